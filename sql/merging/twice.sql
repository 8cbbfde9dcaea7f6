-- twice: ids that arrive more than once.
--
-- grain   one row
-- reads   here: samples that arrive
-- output  n: how many ids; some: the first of them
-- NULL    some, where there are none
SELECT count(*) AS n, min(sample_id, 4) AS some
FROM (
    SELECT sample_id
    FROM here
    GROUP BY sample_id
    HAVING count(*) > 1
);
