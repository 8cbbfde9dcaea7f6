-- unit_pair_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS unit,
    NULL::VARCHAR AS acquisition_a,
    NULL::VARCHAR AS acquisition_b,
    NULL::DOUBLE AS distance,
    NULL::INTEGER AS rank,
    NULL::VARCHAR AS nearest_unit,
    NULL::DOUBLE AS profile_r
WHERE false;
