-- margin_histogram_at(m, bins := 200): how the margins of an encoder are distributed.
--
-- grain   one row per benchmark, encoder and bin, empty bins included
-- reads   margins_at
-- input   m: neighbours per type, 1 to the depth scored; bins: of equal width over [-1, 1]
-- output  lo, hi: edges of the bin, lo belonging to it; n: margins in it; density: their share divided
--         by the width, so that densities of cohorts of any size compare; at_most: share below hi
-- NULL    none; undefined margins are left out. No row where nothing is defined
-- notes   For other groups: GROUP BY centre, croma_bin(margin, 200)
CREATE OR REPLACE MACRO margin_histogram_at(m, bins := 200) AS TABLE
WITH
    counts AS (
        SELECT benchmark, encoder, croma_bin(margin, bins) AS bin, count(*) AS n
        FROM margins_at(m)
        WHERE margin IS NOT NULL
        GROUP BY ALL
    ),
    every_bin AS (
        SELECT benchmark, encoder, unnest(range(bins::BIGINT))::INTEGER AS bin
        FROM (SELECT DISTINCT benchmark, encoder FROM counts)
    ),
    filled AS (
        SELECT
            benchmark,
            encoder,
            bin,
            coalesce(n, 0) AS n,
            sum(n) OVER (PARTITION BY benchmark, encoder) AS total,
            coalesce(sum(n) OVER (PARTITION BY benchmark, encoder ORDER BY bin), 0) AS so_far
        FROM every_bin
        LEFT JOIN counts USING (benchmark, encoder, bin)
    )
SELECT
    benchmark,
    encoder,
    bin,
    2 * bin / bins - 1 AS lo,
    2 * (bin + 1) / bins - 1 AS hi,
    n,
    n / total * bins / 2 AS density,
    so_far / total AS at_most
FROM filled;
