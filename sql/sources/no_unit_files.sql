-- unit_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS unit,
    NULL::VARCHAR AS acquisition,
    NULL::INTEGER AS n_samples,
    NULL::DOUBLE AS intra_distance,
    NULL::DOUBLE AS median_distance
WHERE false;
