-- acquisition_files of a warehouse in which no acquisitions have been compared yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS benchmark,
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS acquisition,
    NULL::INTEGER AS n_vectors,
    NULL::DOUBLE AS mean_distance,
    NULL::DOUBLE AS effective_rank
WHERE false;
