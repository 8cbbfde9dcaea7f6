-- sample_files of a warehouse that has no samples yet.
--
-- grain   no row
-- NULL    none
SELECT NULL::VARCHAR AS sample_id, NULL::VARCHAR AS croma_sql_file
WHERE false;
