-- embedding_files: every embeddings file of a warehouse, as it lies there.
--
-- grain   one row per encoder and sample
-- input   $files: paths of embeddings/encoder=*/*.parquet and, of parts, embeddings/encoder=*/*/*.parquet.
--         DuckDB has no float16 and widens it.
-- NULL    an embedding imported with on_bad_vectors = 'null'
SELECT *
FROM read_parquet(
    $files,
    union_by_name := true,
    filename := 'croma_sql_file',
    hive_partitioning := true,
    hive_types_autocast := false
);
