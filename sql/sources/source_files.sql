-- source_files: every file of sources of a warehouse, as it lies there.
--
-- grain   one row per encoder, dataset, source file and part
-- input   $files: paths of sources/encoder=*/*.parquet
-- NULL    slide_id, embedding, part: see the view sources
SELECT *
FROM read_parquet(
    $files,
    filename := 'croma_sql_file',
    hive_partitioning := true,
    hive_types_autocast := false
);
