-- silhouette_files of a warehouse in which no encoding of the centre has been measured yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS subset,
    NULL::VARCHAR AS sample_id,
    NULL::VARCHAR AS label,
    NULL::VARCHAR AS confounder,
    NULL::VARCHAR AS group_id,
    NULL::VARCHAR AS matched,
    NULL::DOUBLE AS label_silhouette,
    NULL::DOUBLE AS confounder_silhouette
WHERE false;
