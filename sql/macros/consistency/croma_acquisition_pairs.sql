-- croma_acquisition_pairs(relation, unit := 'unit', ...): how consistent the units of a relation are from one
-- acquisition to another.
--
-- grain   one row per ordered pair of acquisitions
-- input   as croma_unit_pairs; permutations: of units, for mantel_p, 0 for none; seed: of the permutations.
--         As a heat map:
--             PIVOT (FROM croma_acquisition_pairs('scans')) ON acquisition_b USING any_value(d_cos)
--             GROUP BY acquisition_a
-- output  n: units compared; with incomplete := 'pairwise' those that have both acquisitions, and pairs can
--         only be compared with each other where n is alike; d_cos: mean cosine distance of a unit to
--         itself; mr_1nn: share of units under acquisition_a whose nearest unit under acquisition_b is themselves; mr_1nn_symmetric: the mean of both directions;
--         top_3, top_5, top_10: share that are among the nearest 3, 5, 10; mantel_r: Pearson's r of the
--         distances of all pairs of units under a and under b; mantel_p: share of permutations, the
--         identity among them, with an r at least as high; profile_r: mean of that of units
-- NULL    all but n where fewer than two units have both acquisitions; mantel_r, mantel_p, profile_r where
--         distances do not differ by more than rounding, as with two units; mantel_p without
--         permutations; scope without by
-- notes   Means are over sorted lists, so that they have the same last bit in every run.
-- source  Scanner-Induced Domain Shifts Undermine the Robustness of Pathology Foundation Models, 2026, eq. 2
--         to 5; Mantel 1967; top-k: Filiot et al. 2025, PLISM, where units are registered tiles
CREATE OR REPLACE MACRO croma_acquisition_pairs(
    relation,
    unit := 'unit',
    acquisition := 'acquisition',
    embedding := 'embedding',
    "by" := NULL,
    incomplete := 'error',
    on_bad_vectors := 'error',
    permutations := 999,
    seed := 0
) AS TABLE
WITH
    compared AS MATERIALIZED (
        FROM croma_consistency(
            relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, permutations,
            seed, 0
        )
    ),
    paired AS (
        SELECT
            scope,
            pair.acquisition_a AS a,
            pair.acquisition_b AS b,
            list_avg(list(pair.distance ORDER BY pair.distance)) AS d_cos,
            count(*) FILTER (pair.rank = 1) / count(*) AS mr_1nn,
            count(*) FILTER (pair.rank <= 3) / count(*) AS top_3,
            count(*) FILTER (pair.rank <= 5) / count(*) AS top_5,
            count(*) FILTER (pair.rank <= 10) / count(*) AS top_10,
            list_avg(list(pair.profile_r ORDER BY pair.profile_r)) AS profile_r
        FROM (SELECT scope, unnest(found.unit_pairs) AS pair FROM compared)
        GROUP BY ALL
    ),
    permuted AS (
        SELECT scope, acquisition_names, unnest(found.acquisition_pairs) AS pair
        FROM compared
    )
SELECT
    acquisition_names[pair.acquisition_a] AS acquisition_a,
    acquisition_names[pair.acquisition_b] AS acquisition_b,
    pair.n_units::BIGINT AS n,
    d_cos,
    mr_1nn,
    avg(mr_1nn) OVER (
        PARTITION BY
            permuted.scope,
            least(pair.acquisition_a, pair.acquisition_b),
            greatest(pair.acquisition_a, pair.acquisition_b)
    ) AS mr_1nn_symmetric,
    top_3,
    top_5,
    top_10,
    pair.mantel_r,
    pair.mantel_p,
    profile_r,
    permuted.scope
FROM permuted
LEFT JOIN paired
    ON permuted.scope IS NOT DISTINCT FROM paired.scope
    AND pair.acquisition_a = a
    AND pair.acquisition_b = b;
