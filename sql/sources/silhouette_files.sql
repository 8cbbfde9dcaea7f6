-- silhouette_files: every file of silhouettes, as it lies there.
--
-- grain   one row per benchmark, encoder, subset and sample
-- input   $files: paths of scores/silhouettes/benchmark=*/encoder=*/*.parquet
-- NULL    subset, matched where the benchmark has none; a silhouette that is undefined
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    label,
    confounder,
    group_id,
    matched,
    label_silhouette,
    confounder_silhouette
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
