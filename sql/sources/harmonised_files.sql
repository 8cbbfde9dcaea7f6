-- harmonised_files: what every embeddings file that harmonising made says of its origin.
--
-- grain   one row per encoder and dataset
-- input   $files: paths of embeddings/encoder=*/*.parquet; those that were imported give no row, and
--         parts are always imported
-- output  harmonised_from: the source encoder; fitted_on: the benchmark whose confounder was removed;
--         method: 'combat', 'mean' or 'directions'; fit_on: 'samples' or 'groups'; keep: what was kept
-- NULL    n_directions, folds, seed where the method has none; n_directions where all were removed
WITH
    told AS (
        SELECT file_name, TRY(decode(value)::JSON -> 'harmonised') AS about
        FROM parquet_kv_metadata($files)
        WHERE TRY(decode(key)) = 'croma_sql'
    )
SELECT
    url_decode(regexp_extract(file_name, '[/\\]encoder=([^/\\]+)[/\\]', 1)) AS encoder,
    url_decode(regexp_extract(file_name, '([^/\\]+)\.parquet$', 1)) AS dataset,
    about ->> 'encoder' AS harmonised_from,
    about ->> 'benchmark' AS fitted_on,
    about ->> 'method' AS method,
    about ->> 'fit_on' AS fit_on,
    TRY_CAST(about -> 'keep' AS VARCHAR[]) AS keep,
    TRY_CAST(about ->> 'n_directions' AS INTEGER) AS n_directions,
    TRY_CAST(about ->> 'folds' AS INTEGER) AS folds,
    TRY_CAST(about ->> 'seed' AS BIGINT) AS seed
FROM told
WHERE about ->> 'encoder' IS NOT NULL;
