-- cluster_count_files: every file of numbers of clusters tried, as it lies there.
--
-- grain   one row per benchmark, encoder, quartet and number of clusters
-- input   $files: paths of scores/cluster_counts/benchmark=*/encoder=*/*.parquet
-- NULL    silhouette where it is undefined
SELECT
    benchmark,
    encoder,
    quartet,
    k,
    silhouette
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
