-- typed_neighbours: the edges of the search, up to the depth scored (20 per side by default).
--
-- grain   one row per benchmark, encoder, subset, sample, type ('SO', 'OS') and rank (1 = nearest)
-- reads   typed_neighbour_files
-- NULL    subset where the benchmark has none; a missing neighbour is a missing row
CREATE OR REPLACE VIEW typed_neighbours AS
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    'SO' AS type,
    generate_subscripts(so_id, 1) AS rank,
    unnest(so_id) AS neighbour_id,
    unnest(so_distance) AS distance
FROM main.typed_neighbour_files
UNION ALL
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    'OS' AS type,
    generate_subscripts(os_id, 1) AS rank,
    unnest(os_id) AS neighbour_id,
    unnest(os_distance) AS distance
FROM main.typed_neighbour_files;
