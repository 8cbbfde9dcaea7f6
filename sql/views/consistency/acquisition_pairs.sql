-- acquisition_pairs: how consistent an encoder is from one acquisition to another.
--
-- grain   one row per benchmark, encoder and ordered pair of acquisitions
-- reads   unit_pair_files, acquisition_pair_files
-- output  n: units; d_cos: mean cosine distance of a unit to itself, 0 is best; mr_1nn: share of the units
--         under acquisition_a whose nearest unit under acquisition_b is themselves; mr_1nn_symmetric: the
--         mean of mr_1nn in both directions; top_3, top_5, top_10: share that are among the nearest 3, 5,
--         10 (all of them, where there are no more units than that); mantel_r: correlation of the two
--         matrices of distances between units; mantel_p: one-sided p of that by permutation, alike for all
--         pairs; profile_r: mean over units of theirs. As a heat map:
--             PIVOT acquisition_pairs ON acquisition_b USING any_value(d_cos)
--             GROUP BY benchmark, encoder, acquisition_a
-- NULL    mantel_r, profile_r where they are undefined (fewer than three units, or distances that are all
--         equal); mantel_p also where no permutations were asked for
-- notes   Means are over sorted lists, so that they have the same last bit in every run.
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equations 2 to 5; top-k: Filiot et al. 2025 (PLISM), where units are registered tiles
CREATE OR REPLACE VIEW acquisition_pairs AS
WITH paired AS (
    SELECT
        benchmark,
        encoder,
        acquisition_a,
        acquisition_b,
        count(*) AS n,
        list_avg(list(distance ORDER BY distance)) AS d_cos,
        count(*) FILTER (rank = 1) / count(*) AS mr_1nn,
        count(*) FILTER (rank <= 3) / count(*) AS top_3,
        count(*) FILTER (rank <= 5) / count(*) AS top_5,
        count(*) FILTER (rank <= 10) / count(*) AS top_10,
        list_avg(list(profile_r ORDER BY profile_r)) AS profile_r
    FROM main.unit_pair_files
    GROUP BY benchmark, encoder, acquisition_a, acquisition_b
)
SELECT
    paired.benchmark,
    paired.encoder,
    paired.acquisition_a,
    paired.acquisition_b,
    paired.n,
    paired.d_cos,
    paired.mr_1nn,
    (paired.mr_1nn + back.mr_1nn) / 2 AS mr_1nn_symmetric,
    paired.top_3,
    paired.top_5,
    paired.top_10,
    permuted.mantel_r,
    permuted.mantel_p,
    paired.profile_r
FROM paired
JOIN paired AS back
    ON back.benchmark = paired.benchmark
    AND back.encoder = paired.encoder
    AND back.acquisition_a = paired.acquisition_b
    AND back.acquisition_b = paired.acquisition_a
LEFT JOIN main.acquisition_pair_files AS permuted
    ON permuted.benchmark = paired.benchmark
    AND permuted.encoder = paired.encoder
    AND permuted.acquisition_a = paired.acquisition_a
    AND permuted.acquisition_b = paired.acquisition_b;
