-- fixed_k_summary: RI, MaRI, k-NN accuracies and support under both published protocols.
--
-- grain   one row per benchmark, encoder and protocol: 'k_star', each encoder at its own k (slide-level
--         panels), or 'median_k', all at the lower median of theirs (PathoROB)
-- reads   operating_points, fixed_k_summary_of
-- output  as fixed_k_summary_of
-- NULL    as in fixed_k_summary_of; no row for what has not been scored with --k
CREATE OR REPLACE VIEW fixed_k_summary AS
WITH
    chosen AS MATERIALIZED (FROM main.operating_points),
    protocols AS (
        SELECT benchmark, encoder, 'k_star' AS protocol, k_star AS k FROM chosen
        UNION ALL
        SELECT benchmark, encoder, 'median_k', median_k FROM chosen WHERE median_k IS NOT NULL
    ),
    points AS (SELECT DISTINCT benchmark, encoder, k FROM protocols)
SELECT protocols.protocol, summary.*
FROM protocols
JOIN fixed_k_summary_of('points') AS summary USING (benchmark, encoder, k);
