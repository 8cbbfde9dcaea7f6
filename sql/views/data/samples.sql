-- samples: ids and attributes of every dataset.
--
-- grain   one row per sample
-- reads   sample_files
-- NULL    an attribute that the sample's dataset does not have
CREATE OR REPLACE VIEW samples AS
SELECT
    sample_id,
    url_decode(regexp_extract(croma_sql_file, '([^/\\]+)\.parquet$', 1)) AS dataset,
    * EXCLUDE (sample_id, croma_sql_file)
FROM main.sample_files;
