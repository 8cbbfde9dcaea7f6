-- typed_neighbour_files of a warehouse in which nothing has been scored yet.
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
    NULL::VARCHAR[] AS so_id,
    NULL::DOUBLE[] AS so_distance,
    NULL::VARCHAR[] AS os_id,
    NULL::DOUBLE[] AS os_distance,
    NULL::BIGINT AS first_so_rank,
    NULL::BIGINT AS first_os_rank
WHERE false;
