-- sample_files of a warehouse that has no samples yet.
SELECT NULL::VARCHAR AS sample_id, NULL::VARCHAR AS croma_sql_file
WHERE false;
