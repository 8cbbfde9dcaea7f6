-- taken: ids that arrive and are somewhere else already.
--
-- grain   one row
-- reads   here: samples that arrive; elsewhere: ids of others
-- output  n: how many ids; some: the first of them
-- NULL    some, where there are none
SELECT count(*) AS n, min(sample_id, 4) AS some
FROM here
SEMI JOIN elsewhere USING (sample_id);
