-- unit_pair_files: every file of units under one acquisition and another, as it lies there.
--
-- grain   one row per benchmark, encoder, unit and ordered pair of acquisitions
-- input   $files: paths of scores/unit_pairs/benchmark=*/encoder=*/*.parquet
-- NULL    profile_r where the distances on one side are all equal, or there are fewer than three
--         units
SELECT
    benchmark,
    encoder,
    unit,
    acquisition_a,
    acquisition_b,
    distance,
    rank,
    nearest_unit,
    profile_r
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
