-- acquisition_pair_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS acquisition_a,
    NULL::VARCHAR AS acquisition_b,
    NULL::DOUBLE AS mantel_r,
    NULL::DOUBLE AS mantel_p,
    NULL::INTEGER AS permutations
WHERE false;
