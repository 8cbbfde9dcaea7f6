-- iok: Intersection-over-K at every K: how much of the neighbourhoods is the same under all acquisitions.
--
-- grain   one row per benchmark, encoder and k = 1, 2, ... up to the depth compared
-- reads   unit_neighbourhood_files
-- output  iok: mean over units of the share of their k nearest that are so under every acquisition; at
--         k = number of the other units it is 1 whatever the encoder
-- NULL    none
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equation 7
CREATE OR REPLACE VIEW iok AS
WITH
    scopes AS (
        SELECT benchmark, encoder, count(*) AS n_units, min(depth) AS depth
        FROM main.unit_neighbourhood_files
        GROUP BY benchmark, encoder
    ),
    grid AS (
        SELECT benchmark, encoder, n_units, unnest(range(1, depth + 1))::INTEGER AS k
        FROM scopes
    ),
    steps AS (
        SELECT benchmark, encoder, k, count(*) AS n
        FROM (
            SELECT benchmark, encoder, unnest(shared_at) AS k
            FROM main.unit_neighbourhood_files
        )
        GROUP BY benchmark, encoder, k
    )
SELECT
    benchmark,
    encoder,
    k,
    coalesce(sum(n) OVER (PARTITION BY benchmark, encoder ORDER BY k), 0) / (k * n_units) AS iok
FROM grid
LEFT JOIN steps USING (benchmark, encoder, k);
