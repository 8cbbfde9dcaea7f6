-- there: samples of a dataset, as others are put among them.
--
-- grain   one row per sample
-- reads   stored: the samples as they were; replaced: ids of those whose sources are replaced; gone:
--         ids of those that these do not have any more, which are left out
-- output  all columns; croma_sql_position: where they stood; croma_sql_replaced: what was known of them
--         from their source is not known any more
-- NULL    as stored
SELECT
    stored.*,
    stored.rowid AS croma_sql_position,
    replaced.sample_id IS NOT NULL AS croma_sql_replaced
FROM stored
LEFT JOIN replaced USING (sample_id)
ANTI JOIN gone ON stored.sample_id = gone.sample_id;
