-- unit_neighbourhood_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS unit,
    NULL::INTEGER AS n_units,
    NULL::INTEGER AS depth,
    NULL::INTEGER[] AS shared_at
WHERE false;
