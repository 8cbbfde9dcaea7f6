-- unit_files: every file of units under their acquisitions, as it lies there.
--
-- grain   one row per benchmark, encoder, unit and acquisition
-- input   $files: paths of scores/units/benchmark=*/encoder=*/*.parquet
-- NULL    none
SELECT
    benchmark,
    encoder,
    unit,
    acquisition,
    n_samples,
    intra_distance,
    median_distance
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
