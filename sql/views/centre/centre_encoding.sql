-- centre_encoding: how strongly each encoder encodes the confounder, and the label beside it.
--
-- grain   one row per benchmark and encoder of which this has been measured
-- reads   silhouette_files, clustering_scores, probe_accuracy
-- output  fm_si: FM-SI, the mean silhouette over the confounder, lower is better; label_silhouette: the
--         same over the label; clustering_score: the mean over quartets, about 1 where k-means finds the
--         labels, about -1 where it finds the confounders; knn_..., linear_..._bacc: balanced accuracy
--         of probes that have learnt from other groups, to be held against confounder_chance and
--         label_chance. With subsets, each but clustering_score is a mean over subsets
-- NULL    what is undefined, as in silhouettes, clustering_scores and probe_accuracy; clustering_score
--         where there is no quartet
-- source  Carretero et al. 2026, FM-SI; Koemen et al. 2025, PathoROB
CREATE OR REPLACE VIEW centre_encoding AS
WITH
    of_subsets AS (
        SELECT
            benchmark,
            encoder,
            subset,
            list_avg(list(confounder_silhouette ORDER BY confounder_silhouette)) AS confounder_mean,
            list_avg(list(label_silhouette ORDER BY label_silhouette)) AS label_mean
        FROM main.silhouette_files
        GROUP BY benchmark, encoder, subset
    ),
    apart AS (
        SELECT
            benchmark,
            encoder,
            list_avg(list(confounder_mean ORDER BY subset)) AS fm_si,
            list_avg(list(label_mean ORDER BY subset)) AS label_silhouette
        FROM of_subsets
        GROUP BY benchmark, encoder
    ),
    clustered AS (
        SELECT
            benchmark,
            encoder,
            list_avg(list(clustering_score ORDER BY quartet)) AS clustering_score
        FROM main.clustering_scores
        GROUP BY benchmark, encoder
    ),
    probed AS (
        SELECT
            benchmark,
            encoder,
            max(balanced_accuracy) FILTER (target = 'confounder' AND probe = 'knn') AS knn_confounder,
            max(balanced_accuracy) FILTER (target = 'confounder' AND probe = 'linear') AS linear_confounder,
            max(balanced_accuracy) FILTER (target = 'label' AND probe = 'knn') AS knn_label,
            max(balanced_accuracy) FILTER (target = 'label' AND probe = 'linear') AS linear_label,
            max(chance) FILTER (target = 'confounder') AS confounder_chance,
            max(chance) FILTER (target = 'label') AS label_chance
        FROM main.probe_accuracy
        GROUP BY benchmark, encoder
    )
SELECT
    benchmark,
    encoder,
    fm_si,
    label_silhouette,
    clustering_score,
    knn_confounder AS knn_confounder_bacc,
    linear_confounder AS linear_confounder_bacc,
    knn_label AS knn_label_bacc,
    linear_label AS linear_label_bacc,
    confounder_chance,
    label_chance
FROM apart
LEFT JOIN clustered USING (benchmark, encoder)
LEFT JOIN probed USING (benchmark, encoder);
