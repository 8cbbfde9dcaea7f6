-- typed_neighbour_files: every typed-neighbour file of a warehouse, as it lies there.
--
-- grain   one row per benchmark, encoder, subset and sample, with lists of its neighbours, nearest
--         first: a sample without neighbours keeps its row, and m-sweeps are list slices
-- input   $files: paths of scores/typed_neighbours/benchmark=*/encoder=*/*.parquet
-- NULL    subset, matched where the benchmark has none; ranks where there is no such neighbour, or
--         where they were not asked for
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
    so_id,
    so_distance,
    os_id,
    os_distance,
    first_so_rank,
    first_os_rank
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
