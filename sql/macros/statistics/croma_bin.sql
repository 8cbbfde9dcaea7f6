-- croma_bin(x, bins := 200): which of equal bins of [-1, 1] a margin falls into, counted from 0.
--
-- grain   scalar
-- input   x DOUBLE, a margin; bins: how many, at least 1. Bin i holds what is at least 2 * i / bins - 1,
--         its lower edge, and below the next one's; the last bin holds 1 as well
-- NULL    x is NULL or NaN, or outside of [-1, 1]; bins is NULL
-- notes   The product is a guess that rounding may put one bin off; the edges, as they are computed,
--         decide.
CREATE OR REPLACE MACRO croma_bin(x, bins := 200) AS
    list_transform(
        [floor((x + 1) / 2 * CASE
            WHEN bins >= 1 AND bins = floor(bins) THEN bins
            ELSE error('bins is ' || bins || '; it is a whole number of at least 1')
        END)],
        lambda guess: CASE
            WHEN x BETWEEN -1 AND 1 THEN least(
                guess + (x >= 2 * (guess + 1) / bins - 1)::INTEGER - (x < 2 * guess / bins - 1)::INTEGER,
                bins - 1
            )::INTEGER
        END
    )[1];
