-- pooled_files of a warehouse that has no embeddings yet.
--
-- grain   no row
-- NULL    none
SELECT NULL::VARCHAR AS encoder, NULL::VARCHAR AS dataset, NULL::VARCHAR AS pooled_from
WHERE false;
