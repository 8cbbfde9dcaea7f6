-- embedding_files of a warehouse that has no embeddings yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS sample_id,
    NULL::FLOAT[] AS embedding,
    NULL::VARCHAR AS croma_sql_file
WHERE false;
