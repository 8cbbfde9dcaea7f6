-- unit_consistency: the metrics of consistency, one unit at a time: who is it that an encoder loses?
--
-- grain   one row per benchmark, encoder and unit
-- reads   unit_pair_files, unit_files, unit_neighbourhood_files, unit_attributes_but
-- output  means over ordered pairs of acquisitions: d_cos, how far its vector moves; mr_1nn, top_3, top_5,
--         top_10, how often it is found again, as the nearest or among the nearest; profile_r, how alike its
--         distances to the others are. intra_distance, how far it lies from the others, mean over
--         acquisitions. iok_1, iok_5, iok_10, the share of its 1, 5, 10 nearest that are so under every
--         acquisition. Every attribute of the unit stands beside, but for those that go by a
--         name of these columns. The mean over units of each is what consistency_summary has, and is
--         of any group too:
--             SELECT benchmark, encoder, avg(d_cos) AS d_cos, avg(mr_1nn) AS mr_1nn,
--                 avg(iok_10) AS iok_10
--             FROM unit_consistency
--             GROUP BY ALL
-- NULL    profile_r where no pair has one; iok_... where neighbourhoods were compared to a smaller
--         depth, as of K units or fewer: iok_10 of ten; attributes, as in unit_attributes
-- notes   Mantel's r is no mean over units: profile_r takes its place. Means are over lists in the order
--         of acquisitions, so that they have the same last bit in every run.
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equations 2 to 7
CREATE OR REPLACE VIEW unit_consistency AS
WITH
    moved AS (
        SELECT
            benchmark,
            encoder,
            unit,
            list_avg(list(distance ORDER BY acquisition_a, acquisition_b)) AS d_cos,
            count(*) FILTER (rank = 1) / count(*) AS mr_1nn,
            count(*) FILTER (rank <= 3) / count(*) AS top_3,
            count(*) FILTER (rank <= 5) / count(*) AS top_5,
            count(*) FILTER (rank <= 10) / count(*) AS top_10,
            list_avg(list(profile_r ORDER BY acquisition_a, acquisition_b)) AS profile_r
        FROM main.unit_pair_files
        GROUP BY benchmark, encoder, unit
    ),
    spread AS (
        SELECT
            benchmark,
            encoder,
            unit,
            list_avg(list(intra_distance ORDER BY acquisition)) AS intra_distance
        FROM main.unit_files
        GROUP BY benchmark, encoder, unit
    )
SELECT
    moved.benchmark,
    moved.encoder,
    moved.unit,
    moved.d_cos,
    moved.mr_1nn,
    moved.top_3,
    moved.top_5,
    moved.top_10,
    moved.profile_r,
    spread.intra_distance,
    CASE WHEN around.depth >= 1 THEN croma_n_shared(around.shared_at, 1)::DOUBLE END AS iok_1,
    CASE WHEN around.depth >= 5 THEN croma_n_shared(around.shared_at, 5) / 5 END AS iok_5,
    CASE WHEN around.depth >= 10 THEN croma_n_shared(around.shared_at, 10) / 10 END AS iok_10,
    attributes.* EXCLUDE (benchmark, unit)
FROM moved
LEFT JOIN spread
    ON spread.benchmark = moved.benchmark
    AND spread.encoder = moved.encoder
    AND spread.unit = moved.unit
LEFT JOIN main.unit_neighbourhood_files AS around
    ON around.benchmark = moved.benchmark
    AND around.encoder = moved.encoder
    AND around.unit = moved.unit
LEFT JOIN unit_attributes_but([
    'encoder', 'd_cos', 'mr_1nn', 'top_3', 'top_5', 'top_10', 'profile_r', 'intra_distance', 'iok_1',
    'iok_5', 'iok_10'
]) AS attributes ON attributes.benchmark = moved.benchmark AND attributes.unit = moved.unit;
