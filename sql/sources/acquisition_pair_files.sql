-- acquisition_pair_files: every file of Mantel correlations, as it lies there.
--
-- grain   one row per benchmark, encoder and ordered pair of acquisitions
-- input   $files: paths of scores/acquisition_pairs/benchmark=*/encoder=*/*.parquet
-- NULL    mantel_r, mantel_p where it is undefined; mantel_p where there were no permutations
SELECT
    benchmark,
    encoder,
    acquisition_a,
    acquisition_b,
    mantel_r,
    mantel_p,
    permutations
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
