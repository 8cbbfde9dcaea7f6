-- source_files of a warehouse of which nobody knows where its vectors are from.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS slide_id,
    NULL::VARCHAR AS level,
    NULL::VARCHAR AS format,
    NULL::VARCHAR AS embedding,
    NULL::VARCHAR AS path,
    NULL::BIGINT AS size,
    NULL::BIGINT AS mtime_ns,
    NULL::BIGINT AS first_row,
    NULL::BIGINT AS n,
    NULL::BIGINT AS n_dropped,
    NULL::BIGINT AS n_null,
    NULL::VARCHAR AS part,
    NULL::BIGINT AS part_row,
    NULL::INTEGER AS d,
    NULL::VARCHAR AS dtype,
    NULL::BIGINT AS checksum,
    NULL::VARCHAR AS attributes,
    NULL::VARCHAR AS croma_sql_file
WHERE false;
