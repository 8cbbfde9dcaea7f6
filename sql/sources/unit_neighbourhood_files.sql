-- unit_neighbourhood_files: every file of shared neighbourhoods, as it lies there.
--
-- grain   one row per benchmark, encoder and unit, with an ascending list: the j-th value is the
--         smallest K at which j neighbours are among the K nearest under every acquisition, so that
--         IoK at any K up to the depth is a count
-- input   $files: paths of scores/unit_neighbourhoods/benchmark=*/encoder=*/*.parquet
-- NULL    none
SELECT
    benchmark,
    encoder,
    unit,
    n_units,
    depth,
    shared_at
FROM read_parquet($files, hive_partitioning := true, hive_types_autocast := false);
