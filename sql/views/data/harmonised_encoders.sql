-- harmonised_encoders: which encoders were made from which by croma-sql harmonise, and how.
--
-- grain   one row per encoder that harmonising made
-- reads   harmonised_files, stored_tables
-- output  columns of harmonised_files but for dataset; is_stale: the source, the benchmark or the version
--         has changed since, see stored_tables
-- NULL    as in harmonised_files
CREATE OR REPLACE VIEW harmonised_encoders AS
SELECT DISTINCT files.* EXCLUDE (dataset), states.is_stale
FROM main.harmonised_files AS files
LEFT JOIN (
    SELECT encoder, bool_or(is_stale) AS is_stale
    FROM main.stored_tables
    WHERE table_name = 'harmonised'
    GROUP BY encoder
) AS states ON states.encoder = files.encoder;
