-- fixed_k_summary: RI, MaRI, k-NN accuracies and support under both published protocols.
--
-- grain   one row per benchmark, encoder and protocol: 'k_star', each encoder at its own k (slide-level
--         panels), or 'median_k', all at the lower median of theirs, controls and harmonised encoders
--         left out (PathoROB)
-- reads   fixed_k_summary_at(false)
-- output  as fixed_k_summary_of
-- NULL    as in fixed_k_summary_of; no row for what has not been scored with --k
CREATE OR REPLACE VIEW fixed_k_summary AS
FROM fixed_k_summary_at(false);
