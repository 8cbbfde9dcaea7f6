-- unit_pairs: every unit under two acquisitions: whose vector moves, whose neighbour is lost, whose view
-- of the others changes.
--
-- grain   one row per benchmark, encoder, unit and ordered pair of acquisitions
-- reads   unit_pair_files, unit_attributes_but
-- output  distance: cosine distance between the unit's vectors under acquisition_a and acquisition_b;
--         rank: of the unit itself among all units under acquisition_b, by distance from its vector
--         under acquisition_a (1: it is found again; equals go by name); nearest_unit: who has rank 1;
--         profile_r: Pearson correlation of its distances to all others under one acquisition and the
--         other, the unit's part in Mantel's r, which itself is no mean over units. Every attribute of
--         the unit stands beside, but for those that go by a name of these columns. Of any group:
--             SELECT benchmark, encoder, acquisition_a, acquisition_b, avg(distance) AS d_cos,
--                 avg((rank = 1)::INTEGER) AS mr_1nn, avg((rank <= 5)::INTEGER) AS top_5
--             FROM unit_pairs
--             GROUP BY ALL
-- NULL    profile_r where all distances on one side are equal, or there are fewer than three units;
--         attributes, as in unit_attributes
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equations 2 to 5
CREATE OR REPLACE VIEW unit_pairs AS
SELECT
    found.benchmark,
    found.encoder,
    found.unit,
    found.acquisition_a,
    found.acquisition_b,
    found.distance,
    found.rank,
    found.nearest_unit,
    found.profile_r,
    attributes.* EXCLUDE (benchmark, unit)
FROM main.unit_pair_files AS found
LEFT JOIN unit_attributes_but([
    'encoder', 'acquisition_a', 'acquisition_b', 'distance', 'rank', 'nearest_unit', 'profile_r'
]) AS attributes ON attributes.benchmark = found.benchmark AND attributes.unit = found.unit;
