-- croma_bin(x, bins := 200): which of equal bins of [-1, 1] a margin falls into, counted from 0.
--
-- grain   scalar
-- input   x DOUBLE, a margin; bins: how many. A bin holds its lower edge, the last one 1 as well
-- NULL    x is NULL or NaN
CREATE OR REPLACE MACRO croma_bin(x, bins := 200) AS
    CASE
        WHEN x BETWEEN -1 AND 1 THEN least(floor((x + 1) / 2 * bins), bins - 1)::INTEGER
    END;
