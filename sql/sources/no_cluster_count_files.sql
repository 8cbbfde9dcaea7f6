-- cluster_count_files of a warehouse in which no encoding of the centre has been measured yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS quartet,
    NULL::INTEGER AS k,
    NULL::DOUBLE AS silhouette
WHERE false;
