-- clustering_files: every file of clusterings, as it lies there.
--
-- grain   one row per benchmark, encoder, quartet and trial
-- input   $files: paths of scores/clusterings/benchmark=*/encoder=*/*.parquet
-- NULL    none
SELECT
    benchmark,
    encoder,
    quartet,
    trial,
    k,
    ari_bio,
    ari_confounder
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
