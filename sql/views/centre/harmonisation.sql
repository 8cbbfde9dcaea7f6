-- harmonisation: every harmonised encoder beside the encoder it was made from.
--
-- grain   one row per harmonised encoder and benchmark that it has been scored or measured under
-- reads   harmonised_encoders, encoder_summary, fixed_k_summary, centre_encoding, silhouette_files
-- output  of harmonised_encoders: harmonised_from, fitted_on (a benchmark that may be another than
--         this one), method, fit_on, keep. Then each metric and its change: after less before. croma,
--         f0, ltm10: encoder_summary; ri, bio_bacc, conf_bacc: fixed_k_summary, both encoders at one k
--         (median_k); the rest: centre_encoding. Before each of the three, how many rows of the
--         benchmark they are of, after and before (with subsets, occurrences): n, n_before;
--         n_fixed_k, ...; n_centre, ... Only samples that took part have harmonised vectors, so a
--         benchmark may have more rows before. Harmonising did what it should where confounder
--         metrics (conf_bacc, fm_si, ..._confounder_bacc) fall and those of the label do not. A linear
--         probe of the confounder may fall below chance, for means were made equal over all groups,
--         those that it is tried on too: read that as chance
-- NULL    a metric that has not been computed (croma-sql score --k 101, croma-sql centre), or is
--         undefined, and its change; every change where rows differ in number: of those alone, score a
--         benchmark of the samples that were harmonised
-- notes   Scores may be older than vectors or benchmark, of either encoder; croma-sql info tells which.
--         Harmonising by another method, or keeping something else, under the same name removes those
--         of what it replaces.
CREATE OR REPLACE VIEW harmonisation AS
WITH
    known AS (
        SELECT benchmark, encoder FROM main.encoder_summary
        UNION
        SELECT benchmark, encoder FROM main.centre_encoding
    ),
    rows_of_centre AS (
        SELECT benchmark, encoder, count(*) AS n
        FROM main.silhouette_files
        GROUP BY benchmark, encoder
    ),
    measured AS MATERIALIZED (
        SELECT
            known.benchmark,
            known.encoder,
            summary.n,
            summary.croma,
            summary.f0,
            summary.ltm10,
            fixed.n AS n_fixed_k,
            fixed.ri,
            fixed.bio_bacc,
            fixed.conf_bacc,
            rows_of_centre.n AS n_centre,
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
        LEFT JOIN rows_of_centre USING (benchmark, encoder)
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
    after.n,
    before.n AS n_before,
    after.croma,
    after.croma - margins.croma AS croma_change,
    after.f0,
    after.f0 - margins.f0 AS f0_change,
    after.ltm10,
    after.ltm10 - margins.ltm10 AS ltm10_change,
    after.n_fixed_k,
    before.n_fixed_k AS n_fixed_k_before,
    after.ri,
    after.ri - fixed.ri AS ri_change,
    after.bio_bacc,
    after.bio_bacc - fixed.bio_bacc AS bio_bacc_change,
    after.conf_bacc,
    after.conf_bacc - fixed.conf_bacc AS conf_bacc_change,
    after.n_centre,
    before.n_centre AS n_centre_before,
    after.fm_si,
    after.fm_si - centre.fm_si AS fm_si_change,
    after.label_silhouette,
    after.label_silhouette - centre.label_silhouette AS label_silhouette_change,
    after.clustering_score,
    after.clustering_score - centre.clustering_score AS clustering_score_change,
    after.knn_confounder_bacc,
    after.knn_confounder_bacc - centre.knn_confounder_bacc AS knn_confounder_bacc_change,
    after.linear_confounder_bacc,
    after.linear_confounder_bacc - centre.linear_confounder_bacc AS linear_confounder_bacc_change,
    after.knn_label_bacc,
    after.knn_label_bacc - centre.knn_label_bacc AS knn_label_bacc_change,
    after.linear_label_bacc,
    after.linear_label_bacc - centre.linear_label_bacc AS linear_label_bacc_change
FROM main.harmonised_encoders AS origin
JOIN measured AS after ON after.encoder = origin.encoder
LEFT JOIN measured AS before
    ON before.encoder = origin.harmonised_from AND before.benchmark = after.benchmark
LEFT JOIN measured AS margins
    ON margins.encoder = before.encoder AND margins.benchmark = before.benchmark AND margins.n = after.n
LEFT JOIN measured AS fixed
    ON fixed.encoder = before.encoder AND fixed.benchmark = before.benchmark AND fixed.n_fixed_k = after.n_fixed_k
LEFT JOIN measured AS centre
    ON centre.encoder = before.encoder AND centre.benchmark = before.benchmark AND centre.n_centre = after.n_centre;
