-- embeddings: vectors of every encoder and dataset.
--
-- grain   one row per encoder and sample
-- reads   embedding_files
-- NULL    embedding, where it was imported with on_bad_vectors = 'null'
CREATE OR REPLACE VIEW embeddings AS
SELECT
    encoder,
    url_decode(
        regexp_extract(croma_sql_file, '[/\\]encoder=[^/\\]+[/\\]([^/\\]+?)(\.parquet$|[/\\])', 1)
    ) AS dataset,
    sample_id,
    embedding
FROM main.embedding_files;
