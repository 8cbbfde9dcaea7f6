-- encoder_panel_at(m, protocol := 'median_k', include_harmonised := false): the published table of
-- encoders: margins beside fixed-k metrics.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_summary_at, encoders, fixed_k_summary_at, stored_tables
-- input   m: neighbours per type, 1 to the depth scored; protocol: 'median_k' or 'k_star', at which k
--         the fixed-k metrics are read, see fixed_k_summary; include_harmonised: whether harmonised
--         encoders count in the median
-- output  is_control and is_harmonised of encoders, columns of encoder_summary_at, and k, n_fixed_k (samples with a vector: what RI and its like
--         are over, more than have a margin), bio_bacc, conf_bacc, ri, mari, support, tau and
--         tau_warning of fixed_k_summary; is_stale: of either, see stored_tables
-- NULL    fixed-k metrics of what has not been scored with --k, or is left without a k
CREATE OR REPLACE MACRO encoder_panel_at(m, protocol := 'median_k', include_harmonised := false) AS TABLE
SELECT
    summary.benchmark,
    summary.encoder,
    encoders.is_control,
    summary.is_harmonised,
    summary.* EXCLUDE (benchmark, encoder, is_harmonised, is_stale),
    fixed.k,
    fixed.n AS n_fixed_k,
    fixed.bio_bacc,
    fixed.conf_bacc,
    fixed.ri,
    fixed.mari,
    fixed.support,
    fixed.tau,
    fixed.tau_warning,
    summary.is_stale OR coalesce(stored.is_stale, false) AS is_stale
FROM encoder_summary_at(m) AS summary
JOIN main.encoders ON encoders.encoder = summary.encoder
LEFT JOIN main.stored_tables AS stored
    ON stored.table_name = 'neighbours'
    AND stored.benchmark = summary.benchmark
    AND stored.encoder = summary.encoder
LEFT JOIN fixed_k_summary_at(include_harmonised) AS fixed
    ON fixed.benchmark = summary.benchmark
    AND fixed.encoder = summary.encoder
    AND fixed.protocol = CASE
        WHEN protocol IN ('median_k', 'k_star') THEN protocol
        ELSE error('protocol is ' || coalesce(protocol, 'NULL') || '; it is median_k or k_star')
    END;
