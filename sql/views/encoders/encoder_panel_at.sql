-- encoder_panel_at(m, protocol := 'median_k'): the published table of encoders: margins beside fixed-k
-- metrics.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_summary_at, encoders, fixed_k_summary
-- input   m: neighbours per type, 1 to the depth scored; protocol: 'median_k' or 'k_star', at which k
--         the fixed-k metrics are read, see fixed_k_summary
-- output  columns of encoder_summary_at, and k, bio_bacc, conf_bacc, ri, mari, support, tau and
--         tau_warning of fixed_k_summary
-- NULL    fixed-k metrics of what has not been scored with --k, or is left without a k
CREATE OR REPLACE MACRO encoder_panel_at(m, protocol := 'median_k') AS TABLE
SELECT
    summary.benchmark,
    summary.encoder,
    encoders.is_control,
    summary.* EXCLUDE (benchmark, encoder),
    fixed.k,
    fixed.bio_bacc,
    fixed.conf_bacc,
    fixed.ri,
    fixed.mari,
    fixed.support,
    fixed.tau,
    fixed.tau_warning
FROM encoder_summary_at(m) AS summary
JOIN main.encoders ON encoders.encoder = summary.encoder
LEFT JOIN main.fixed_k_summary AS fixed
    ON fixed.benchmark = summary.benchmark
    AND fixed.encoder = summary.encoder
    AND fixed.protocol = CASE
        WHEN protocol IN ('median_k', 'k_star') THEN protocol
        ELSE error('protocol is ' || coalesce(protocol, 'NULL') || '; it is median_k or k_star')
    END;
