-- member_files: every file of who is in which unit of a paired benchmark, as it lies there.
--
-- grain   one row per benchmark and sample
-- input   $files: paths of scores/members/benchmark=*/*.parquet
-- NULL    none
SELECT
    benchmark,
    sample_id,
    unit,
    acquisition
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
