-- harmonised_encoders: which encoders were made from which by croma-sql harmonise, and how.
--
-- grain   one row per encoder that harmonising made
-- reads   harmonised_files
-- output  columns of harmonised_files but for dataset
-- NULL    as in harmonised_files
-- notes   Scores of an encoder may be older than its vectors, see harmonisation.
CREATE OR REPLACE VIEW harmonised_encoders AS
SELECT DISTINCT * EXCLUDE (dataset)
FROM main.harmonised_files;
