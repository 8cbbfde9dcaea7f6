-- harmonisation: every harmonised encoder beside the encoder it was made from.
--
-- grain   one row per harmonised encoder and benchmark that it has been scored or measured under
-- reads   harmonised_encoders, encoder_summary, fixed_k_summary, centre_encoding
-- output  of harmonised_encoders: harmonised_from, fitted_on (a benchmark that may be another than
--         this one), method, fit_on, keep. Then each metric and its change: after less before. croma,
--         f0, ltm10: encoder_summary; ri, bio_bacc, conf_bacc: fixed_k_summary, both encoders at one k
--         (median_k); the rest: centre_encoding. Harmonising did what it should where confounder
--         metrics (conf_bacc, fm_si, ..._confounder_bacc) fall and those of the label do not. A linear
--         probe of the confounder may fall below chance, for means were made equal over all groups,
--         those that it is tried on too: read that as chance
-- NULL    a metric that has not been computed (croma-sql score --k 101, croma-sql centre), or is undefined, and its change
CREATE OR REPLACE VIEW harmonisation AS
WITH
    known AS (
        SELECT benchmark, encoder FROM main.encoder_summary
        UNION
        SELECT benchmark, encoder FROM main.centre_encoding
    ),
    measured AS MATERIALIZED (
        SELECT
            known.benchmark,
            known.encoder,
            summary.croma,
            summary.f0,
            summary.ltm10,
            fixed.ri,
            fixed.bio_bacc,
            fixed.conf_bacc,
            encoding.fm_si,
            encoding.label_silhouette,
            encoding.clustering_score,
            encoding.knn_confounder_bacc,
            encoding.linear_confounder_bacc,
            encoding.knn_label_bacc,
            encoding.linear_label_bacc
        FROM known
        LEFT JOIN main.encoder_summary AS summary USING (benchmark, encoder)
        LEFT JOIN main.centre_encoding AS encoding USING (benchmark, encoder)
        LEFT JOIN main.fixed_k_summary AS fixed
            ON fixed.benchmark = known.benchmark
            AND fixed.encoder = known.encoder
            AND fixed.protocol = 'median_k'
    )
SELECT
    after.benchmark,
    after.encoder,
    origin.harmonised_from,
    origin.fitted_on,
    origin.method,
    origin.fit_on,
    origin.keep,
    after.croma,
    after.croma - before.croma AS croma_change,
    after.f0,
    after.f0 - before.f0 AS f0_change,
    after.ltm10,
    after.ltm10 - before.ltm10 AS ltm10_change,
    after.ri,
    after.ri - before.ri AS ri_change,
    after.bio_bacc,
    after.bio_bacc - before.bio_bacc AS bio_bacc_change,
    after.conf_bacc,
    after.conf_bacc - before.conf_bacc AS conf_bacc_change,
    after.fm_si,
    after.fm_si - before.fm_si AS fm_si_change,
    after.label_silhouette,
    after.label_silhouette - before.label_silhouette AS label_silhouette_change,
    after.clustering_score,
    after.clustering_score - before.clustering_score AS clustering_score_change,
    after.knn_confounder_bacc,
    after.knn_confounder_bacc - before.knn_confounder_bacc AS knn_confounder_bacc_change,
    after.linear_confounder_bacc,
    after.linear_confounder_bacc - before.linear_confounder_bacc AS linear_confounder_bacc_change,
    after.knn_label_bacc,
    after.knn_label_bacc - before.knn_label_bacc AS knn_label_bacc_change,
    after.linear_label_bacc,
    after.linear_label_bacc - before.linear_label_bacc AS linear_label_bacc_change
FROM main.harmonised_encoders AS origin
JOIN measured AS after ON after.encoder = origin.encoder
LEFT JOIN measured AS before
    ON before.encoder = origin.harmonised_from AND before.benchmark = after.benchmark;
