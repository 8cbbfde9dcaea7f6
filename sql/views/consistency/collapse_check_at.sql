-- collapse_check_at(min_spread): whether an encoder is consistent, or merely collapsed: where all units lie
-- at one place, every unit is near itself under any acquisition, and near all others too.
--
-- grain   one row per benchmark and encoder
-- reads   consistency_summary, acquisition_files, unit_files
-- input   min_spread: cosine distance below which all units lie at one place; 0.01 in collapse_check
-- output  n_units, d_cos, intra_distance, mr_1nn, mantel_r: as in consistency_summary; median_distance: of
--         units to the others under the same acquisition (see units), the median over units and
--         acquisitions, which a few units far from all else hardly move; relative_d_cos: d_cos /
--         intra_distance, how far a unit moves from one acquisition to another as a share of how far units
--         lie apart, which an offset common to all vectors hardly changes; mean_distance: between every
--         two vectors, of whatever unit and acquisition; effective_rank: of the units under one
--         acquisition (see acquisitions), the mean over acquisitions; d_cos_rank, relative_rank: among the
--         encoders of the benchmark, 1 is the lowest, controls too, since this is a check and no contest;
--         is_collapse; collapse_reason, the first of these that holds:
--         (1) no_spread: the distance of units is below min_spread: the mean under one acquisition
--         (intra_distance) or all together (mean_distance), or median_distance;
--         (2) low_rank: effective_rank is below 2, they lie on a line (of more than three units, since so
--         few always do nearly);
--         (3) compact: d_cos is lower than the others', but because units lie closer together, not because
--         they move less: intra_distance is at most 0.8 of theirs, mr_1nn is lower by 0.05 or more, and
--         either mantel_r is lower by 0.05 or more or relative_d_cos is above 1.25 of theirs. Theirs is the
--         median over the other encoders of the benchmark with as many units that are neither (1) nor
--         (2), so that an encoder that is alone is never called compact
-- NULL    relative_d_cos and its rank where intra_distance is 0; effective_rank where all vectors coincide;
--         collapse_reason where there is none; is_collapse where it is unknown, since there is no
--         reason, but one of the three distances is not there: its table is missing
-- notes   no_spread and low_rank tell that distances are of little use, not that ranks are: mr_1nn and
--         mantel_r beside them say whether units are still told apart.
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         section 5.1.2 (compact: what is found there of a ResNet)
CREATE OR REPLACE MACRO collapse_check_at(min_spread) AS TABLE
WITH
    ranks AS (
        SELECT
            benchmark,
            encoder,
            list_avg(
                list(effective_rank ORDER BY effective_rank) FILTER (acquisition IS NOT NULL)
            ) AS effective_rank,
            any_value(mean_distance) FILTER (acquisition IS NULL) AS mean_distance
        FROM main.acquisition_files
        GROUP BY benchmark, encoder
    ),
    middles AS (
        SELECT benchmark, encoder, median(median_distance) AS median_distance
        FROM main.unit_files
        GROUP BY benchmark, encoder
    ),
    measured AS MATERIALIZED (
        SELECT
            *,
            d_cos / nullif(intra_distance, 0) AS relative_d_cos,
            CASE
                WHEN TRY_CAST(min_spread::VARCHAR AS DOUBLE) BETWEEN 0 AND 2 IS NOT TRUE THEN error(
                    'collapse_check_at: min_spread is ' || coalesce(min_spread::VARCHAR, 'NULL')
                    || '; it is a cosine distance, from 0 to 2'
                )
                WHEN least(mean_distance, intra_distance, median_distance)
                    < TRY_CAST(min_spread::VARCHAR AS DOUBLE) THEN 'no_spread'
                WHEN effective_rank < 2 AND n_units > 3 THEN 'low_rank'
                WHEN mean_distance + intra_distance + median_distance IS NULL THEN 'unknown'
            END AS own_reason
        FROM main.consistency_summary
        LEFT JOIN ranks USING (benchmark, encoder)
        LEFT JOIN middles USING (benchmark, encoder)
    ),
    compared AS (
        SELECT
            measured.*,
            median(other.d_cos) AS other_d_cos,
            median(other.intra_distance) AS other_intra_distance,
            median(other.relative_d_cos) AS other_relative_d_cos,
            median(other.mr_1nn) AS other_mr_1nn,
            median(other.mantel_r) AS other_mantel_r
        FROM measured
        LEFT JOIN measured AS other
            ON other.benchmark = measured.benchmark
            AND other.encoder <> measured.encoder
            AND other.n_units = measured.n_units
            AND other.own_reason IS NULL
        GROUP BY ALL
    ),
    judged AS (
        SELECT
            *,
            CASE
                WHEN own_reason IS NOT NULL THEN own_reason
                WHEN d_cos < other_d_cos
                    AND intra_distance <= 0.8 * other_intra_distance
                    AND mr_1nn <= other_mr_1nn - 0.05
                    AND (
                        mantel_r <= other_mantel_r - 0.05
                        OR relative_d_cos > 1.25 * other_relative_d_cos
                    ) THEN 'compact'
            END AS collapse_reason
        FROM compared
    )
SELECT
    benchmark,
    encoder,
    n_units,
    d_cos,
    intra_distance,
    median_distance,
    relative_d_cos,
    mean_distance,
    effective_rank,
    mr_1nn,
    mantel_r,
    rank() OVER (PARTITION BY benchmark ORDER BY d_cos) AS d_cos_rank,
    CASE
        WHEN relative_d_cos IS NOT NULL
        THEN rank() OVER (PARTITION BY benchmark ORDER BY relative_d_cos NULLS LAST)
    END AS relative_rank,
    nullif(collapse_reason, 'unknown') AS collapse_reason,
    CASE
        WHEN collapse_reason IS NULL THEN false
        WHEN collapse_reason <> 'unknown' THEN true
    END AS is_collapse
FROM judged;
