-- probe_prediction_files: every file of predictions of probes, as it lies there.
--
-- grain   one row per benchmark, encoder, subset, sample, target and probe
-- input   $files: paths of scores/probe_predictions/benchmark=*/encoder=*/*.parquet
-- NULL    subset where the benchmark has none
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    group_id,
    target,
    probe,
    fold,
    truth,
    predicted
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
