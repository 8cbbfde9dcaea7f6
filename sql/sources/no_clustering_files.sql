-- clustering_files of a warehouse in which no encoding of the centre has been measured yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS quartet,
    NULL::INTEGER AS trial,
    NULL::INTEGER AS k,
    NULL::DOUBLE AS ari_bio,
    NULL::DOUBLE AS ari_confounder
WHERE false;
