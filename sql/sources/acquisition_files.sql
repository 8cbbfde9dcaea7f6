-- acquisition_files: every file of the spread of vectors, as it lies there.
--
-- grain   one row per benchmark, encoder and acquisition, and one for all acquisitions together
-- input   $files: paths of scores/acquisitions/benchmark=*/encoder=*/*.parquet
-- NULL    acquisition in the row of all together; effective_rank where all vectors coincide
SELECT
    benchmark,
    encoder,
    acquisition,
    n_vectors,
    mean_distance,
    effective_rank
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
