-- suppliers_at(m): which label x confounder cells supply the matches and the distractors.
--
-- grain   one row per benchmark, encoder, type ('SO' matches, 'OS' distractors), label, confounder
--         (the cell of the samples) and neighbour_label, neighbour_confounder (the cell that supplies)
-- reads   typed_neighbour_files
-- input   m: neighbours per type, 1 to the depth scored
-- output  n: edges; share: of all edges of this type from that cell; expected_share: what the cell
--         would supply if all candidates of this type were equally near, by its number of samples;
--         lift: share / expected_share; distance: mean of the edges
-- NULL    none; a cell that supplies nothing has n = 0 and distance NULL
-- notes   Candidates that the samples' own groups exclude are counted as available.
CREATE OR REPLACE MACRO suppliers_at(m) AS TABLE
WITH
    there AS NOT MATERIALIZED (
        SELECT
            benchmark,
            encoder,
            coalesce(subset, '') AS subset,
            coalesce(matched, '') AS matched,
            sample_id,
            label,
            confounder,
            so_id[:checked_m] AS so_id,
            so_distance[:checked_m] AS so_distance,
            os_id[:checked_m] AS os_id,
            os_distance[:checked_m] AS os_distance
        FROM (
            SELECT *, croma_checked_depth('m', m, depth, benchmark, encoder) AS checked_m
            FROM main.typed_neighbour_files
        )
        WHERE usable
    ),
    edges AS NOT MATERIALIZED (
        SELECT
            * EXCLUDE (so_id, so_distance, os_id, os_distance),
            'SO' AS type,
            unnest(so_id) AS neighbour_id,
            unnest(so_distance) AS distance
        FROM there
        UNION ALL
        SELECT
            * EXCLUDE (so_id, so_distance, os_id, os_distance),
            'OS',
            unnest(os_id),
            unnest(os_distance)
        FROM there
    ),
    found AS (
        SELECT
            edges.benchmark,
            edges.encoder,
            edges.type,
            edges.label,
            edges.confounder,
            neighbour.label AS neighbour_label,
            neighbour.confounder AS neighbour_confounder,
            count(*) AS n,
            list_avg(list(edges.distance ORDER BY edges.distance)) AS distance
        FROM edges
        JOIN there AS neighbour
            ON neighbour.benchmark = edges.benchmark
            AND neighbour.encoder = edges.encoder
            AND neighbour.subset = edges.subset
            AND neighbour.sample_id = edges.neighbour_id
        GROUP BY ALL
    ),
    cells AS NOT MATERIALIZED (
        SELECT benchmark, encoder, subset, matched, label, confounder, count(*) AS size
        FROM there
        GROUP BY ALL
    ),
    listed AS NOT MATERIALIZED (
        SELECT benchmark, encoder, subset, matched, type, label, confounder, count(*) AS n
        FROM edges
        GROUP BY ALL
    ),
    available AS (
        SELECT
            listed.benchmark,
            listed.encoder,
            listed.type,
            listed.label,
            listed.confounder,
            cells.label AS neighbour_label,
            cells.confounder AS neighbour_confounder,
            listed.n * cells.size / sum(cells.size) OVER (
                PARTITION BY listed.benchmark, listed.encoder, listed.subset, listed.matched,
                    listed.type, listed.label, listed.confounder
            ) AS expected
        FROM listed
        JOIN cells
            ON cells.benchmark = listed.benchmark
            AND cells.encoder = listed.encoder
            AND cells.subset = listed.subset
            AND cells.matched = listed.matched
            AND (cells.label = listed.label) = (listed.type = 'SO')
            AND (cells.confounder = listed.confounder) = (listed.type = 'OS')
    ),
    summed AS (
        SELECT
            benchmark,
            encoder,
            type,
            label,
            confounder,
            neighbour_label,
            neighbour_confounder,
            list_sum(list(expected ORDER BY expected)) AS expected
        FROM available
        GROUP BY ALL
    ),
    shares AS (
        SELECT
            summed.* EXCLUDE (expected),
            coalesce(found.n, 0) AS n,
            coalesce(found.n, 0) / sum(found.n) OVER of_cell AS share,
            expected / list_sum(list_sort(list(expected) OVER of_cell)) AS expected_share,
            found.distance
        FROM summed
        LEFT JOIN found USING (
            benchmark, encoder, type, label, confounder, neighbour_label, neighbour_confounder
        )
        WINDOW of_cell AS (PARTITION BY benchmark, encoder, type, label, confounder)
    )
SELECT
    benchmark,
    encoder,
    type,
    label,
    confounder,
    neighbour_label,
    neighbour_confounder,
    n,
    share,
    expected_share,
    share / expected_share AS lift,
    distance
FROM shares;
