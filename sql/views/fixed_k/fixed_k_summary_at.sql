-- fixed_k_summary_at(include_harmonised): RI, MaRI, k-NN accuracies and support under both published
-- protocols, harmonised encoders counted in the shared k or not.
--
-- grain   one row per benchmark, encoder and protocol: 'k_star', each encoder at its own k (slide-level
--         panels), or 'median_k', all at the lower median of theirs (PathoROB)
-- reads   knn_accuracy, operating_points_of, fixed_k_summary_of
-- input   include_harmonised: as in operating_points_of
-- output  as fixed_k_summary_of
-- NULL    as in fixed_k_summary_of; no row for what has not been scored with --k
CREATE OR REPLACE MACRO fixed_k_summary_at(include_harmonised) AS TABLE
WITH
    accuracies AS (FROM main.knn_accuracy),  -- query_table would take a CTE of the query's own for it
    chosen AS MATERIALIZED (
        FROM operating_points_of('accuracies', include_harmonised := include_harmonised)
    ),
    protocols AS (
        SELECT benchmark, encoder, 'k_star' AS protocol, k_star AS k FROM chosen
        UNION ALL
        SELECT benchmark, encoder, 'median_k', median_k FROM chosen WHERE median_k IS NOT NULL
    ),
    points AS (SELECT DISTINCT benchmark, encoder, k FROM protocols)
SELECT protocols.protocol, summary.*
FROM protocols
JOIN fixed_k_summary_of('points') AS summary USING (benchmark, encoder, k);
