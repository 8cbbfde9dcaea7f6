-- member_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS sample_id,
    NULL::VARCHAR AS unit,
    NULL::VARCHAR AS acquisition
WHERE false;
