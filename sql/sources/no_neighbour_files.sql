-- neighbour_files of a warehouse in which nothing has been scored with k yet.
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
    NULL::BOOLEAN AS usable,
    NULL::INTEGER AS depth,
    NULL::VARCHAR[] AS neighbour_id,
    NULL::VARCHAR[] AS type,
    NULL::DOUBLE[] AS distance,
    NULL::BOOLEAN[] AS label_hit,
    NULL::BOOLEAN[] AS confounder_hit
WHERE false;
