-- neighbour_files: every file of nearest neighbours of any type, as it lies there.
--
-- grain   one row per benchmark, encoder, subset and sample, with lists of its neighbours, nearest
--         first: a sample without neighbours keeps its row, and k-sweeps are list slices
-- input   $files: paths of scores/neighbours/benchmark=*/encoder=*/*.parquet
-- NULL    subset, matched where the benchmark has none
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    label,
    confounder,
    group_id,
    matched,
    usable,
    depth,
    neighbour_id,
    type,
    distance,
    label_hit,
    confounder_hit
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
