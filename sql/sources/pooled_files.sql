-- pooled_files: what every embeddings file that pooling made says of its origin.
--
-- grain   one row per encoder and dataset
-- input   $files: paths of embeddings/encoder=*/*.parquet; those that were not pooled give no row
-- output  pooled_from: the encoder whose vectors were pooled
-- NULL    none
WITH
    told AS (
        SELECT file_name, TRY(decode(value)::JSON -> 'pooled') AS about
        FROM parquet_kv_metadata($files)
        WHERE TRY(decode(key)) = 'croma_sql'
    )
SELECT
    url_decode(regexp_extract(file_name, '[/\\]encoder=([^/\\]+)[/\\]', 1)) AS encoder,
    url_decode(regexp_extract(file_name, '([^/\\]+)\.parquet$', 1)) AS dataset,
    about ->> 'encoder' AS pooled_from
FROM told
WHERE about ->> 'encoder' IS NOT NULL;
