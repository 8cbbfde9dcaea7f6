-- sample_files: every samples file of a warehouse, as it lies there.
--
-- grain   one row per sample
-- input   $files: paths of samples/*.parquet
-- NULL    an attribute that a dataset does not have; types that differ are widened, in the end to text
SELECT *
FROM read_parquet($files, union_by_name := true, filename := 'croma_sql_file', hive_partitioning := false);
