-- clustering_scores: how far clusters of each quartet follow the label rather than the confounder.
--
-- grain   one row per benchmark, encoder and quartet
-- reads   clustering_files
-- output  as croma_clustering_quartets, and k, the number of clusters
-- NULL    everything but trials where no number of clusters could be tried, see clusterings
CREATE OR REPLACE VIEW clustering_scores AS
WITH of_each AS (
    SELECT *, {'benchmark': benchmark, 'encoder': encoder, 'k': k} AS of_what
    FROM main.clustering_files
)
SELECT
    scope.benchmark,
    scope.encoder,
    quartet,
    scope.k,
    ari_bio,
    ari_confounder,
    clustering_score,
    clustering_score_sd,
    trials
FROM croma_clustering_quartets('of_each', "by" := 'of_what');
