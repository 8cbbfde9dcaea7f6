-- window_shortfall_of(points): how far the k nearest fall short of the neighbours that RI counts.
--
-- grain   one row per benchmark, encoder and k
-- reads   typed_neighbour_files
-- input   points: name of a relation with columns benchmark, encoder and k
-- output  n: samples; first_so, first_os: median rank of the nearest SO and OS among all eligible
--         candidates; first_typed: of the nearer of the two; so_within_k, os_within_k, typed_within_k:
--         fraction of samples that have it within k (typed_within_k is the support); shortfall:
--         first_typed / k, above 1 where half of the samples have none within k
-- NULL    all but n and the keys, unless scored with --first-ranks (or where nobody has any SO
--         or OS). A sample without any SO (or OS)
--         counts as one whose SO lies beyond all ranks: it is not within k, and a median over such is NULL
-- source  Grisi et al. 2026, supplement A.4 and table 12
CREATE OR REPLACE MACRO window_shortfall_of(points) AS TABLE
WITH ranked AS (
    SELECT
        benchmark,
        encoder,
        k::INTEGER AS k,
        coalesce(first_so_rank, 'inf'::DOUBLE) AS so,
        coalesce(first_os_rank, 'inf'::DOUBLE) AS os,
        bool_or(first_so_rank IS NOT NULL OR first_os_rank IS NOT NULL) OVER (
            PARTITION BY benchmark, encoder
        ) AS known
    FROM main.typed_neighbour_files
    JOIN (SELECT DISTINCT benchmark, encoder, k FROM query_table(points)) USING (benchmark, encoder)
    WHERE usable
)
SELECT
    benchmark,
    encoder,
    k,
    count(*) AS n,
    nullif(median(so) FILTER (known), 'inf'::DOUBLE) AS first_so,
    nullif(median(os) FILTER (known), 'inf'::DOUBLE) AS first_os,
    nullif(median(least(so, os)) FILTER (known), 'inf'::DOUBLE) AS first_typed,
    avg((so <= k)::INTEGER) FILTER (known) AS so_within_k,
    avg((os <= k)::INTEGER) FILTER (known) AS os_within_k,
    avg((least(so, os) <= k)::INTEGER) FILTER (known) AS typed_within_k,
    nullif(median(least(so, os)) FILTER (known), 'inf'::DOUBLE) / k AS shortfall
FROM ranked
GROUP BY benchmark, encoder, k;
