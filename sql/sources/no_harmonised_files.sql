-- harmonised_files of a warehouse that has no embeddings yet.
--
-- grain   no row
-- NULL    none
SELECT
    NULL::VARCHAR AS encoder,
    NULL::VARCHAR AS dataset,
    NULL::VARCHAR AS harmonised_from,
    NULL::VARCHAR AS fitted_on,
    NULL::VARCHAR AS method,
    NULL::VARCHAR AS fit_on,
    NULL::VARCHAR[] AS keep,
    NULL::INTEGER AS n_directions,
    NULL::INTEGER AS folds,
    NULL::BIGINT AS seed
WHERE false;
