-- cluster_counts: how well each number of clusters divides a quartet.
--
-- grain   one row per benchmark, encoder, quartet and k tried
-- reads   cluster_count_files
-- output  silhouette: mean cosine silhouette of the clusters; is_chosen: the k of the trials, the
--         smallest of those with the highest silhouette
-- NULL    silhouette, where no two clusters were found
CREATE OR REPLACE VIEW cluster_counts AS
SELECT
    benchmark,
    encoder,
    quartet,
    k,
    silhouette,
    coalesce(k = first(k ORDER BY silhouette DESC NULLS LAST, k ASC) OVER (
        PARTITION BY benchmark, encoder, quartet
    ) AND silhouette IS NOT NULL, false) AS is_chosen
FROM main.cluster_count_files;
