-- consistency_summary: how consistent each encoder is over all acquisitions.
--
-- grain   one row per benchmark and encoder
-- reads   acquisition_pairs, unit_files, unit_neighbourhood_files
-- output  n_units, n_acquisitions; d_cos, mr_1nn, top_3, top_5, top_10, mantel_r, profile_r: means over all
--         ordered pairs of acquisitions; intra_distance: mean over units and acquisitions; iok_1, iok_5,
--         iok_10: Intersection-over-K at K = 1, 5, 10
-- NULL    iok_... where neighbourhoods were compared to a smaller depth, as of K units or fewer: iok_10 of
--         ten; mantel_r and profile_r where no pair has one
-- notes   To compare encoders of a benchmark, n_units must be equal: how often a unit is found again, and
--         keeps its neighbours, depends on how many there are to choose from. A low d_cos says that a unit stays where it was, or that all units are at one place: the view
--         collapse_check tells which. Means are over sorted lists, so that they have the same last bit
--         in every run.
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equations 2 to 7
CREATE OR REPLACE VIEW consistency_summary AS
WITH
    moved AS (
        SELECT
            benchmark,
            encoder,
            max(n) AS n_units,
            count(DISTINCT acquisition_a) AS n_acquisitions,
            list_avg(list(d_cos ORDER BY d_cos)) AS d_cos,
            list_avg(list(mr_1nn ORDER BY mr_1nn)) AS mr_1nn,
            list_avg(list(top_3 ORDER BY top_3)) AS top_3,
            list_avg(list(top_5 ORDER BY top_5)) AS top_5,
            list_avg(list(top_10 ORDER BY top_10)) AS top_10,
            list_avg(list(mantel_r ORDER BY mantel_r)) AS mantel_r,
            list_avg(list(profile_r ORDER BY profile_r)) AS profile_r
        FROM main.acquisition_pairs
        GROUP BY benchmark, encoder
    ),
    spread AS (
        SELECT
            benchmark,
            encoder,
            list_avg(list(intra_distance ORDER BY intra_distance)) AS intra_distance
        FROM main.unit_files
        GROUP BY benchmark, encoder
    ),
    shared AS (
        SELECT
            benchmark,
            encoder,
            CASE WHEN min(depth) >= 1 THEN sum(croma_n_shared(shared_at, 1)) / count(*) END AS iok_1,
            CASE WHEN min(depth) >= 5 THEN sum(croma_n_shared(shared_at, 5)) / (5 * count(*)) END AS iok_5,
            CASE
                WHEN min(depth) >= 10 THEN sum(croma_n_shared(shared_at, 10)) / (10 * count(*))
            END AS iok_10
        FROM main.unit_neighbourhood_files
        GROUP BY benchmark, encoder
    )
SELECT
    benchmark,
    encoder,
    n_units,
    n_acquisitions,
    d_cos,
    mr_1nn,
    top_3,
    top_5,
    top_10,
    mantel_r,
    intra_distance,
    iok_1,
    iok_5,
    iok_10,
    profile_r
FROM moved
LEFT JOIN spread USING (benchmark, encoder)
LEFT JOIN shared USING (benchmark, encoder);
