-- units: every unit under every acquisition: how far it lies from the other units there.
--
-- grain   one row per benchmark, encoder, unit and acquisition
-- reads   unit_files, unit_attributes_but
-- output  n_samples: vectors whose mean the unit is; intra_distance: mean cosine distance to all other
--         units under the same acquisition; median_distance: the median of these distances, which a few
--         units far from all else hardly move. avg(intra_distance) of any group is its mean intra-scanner
--         distance. Every attribute of the unit stands beside, but for those that go by a name of
--         these columns
-- NULL    attributes, as in unit_attributes
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equation 6
CREATE OR REPLACE VIEW units AS
SELECT
    found.benchmark,
    found.encoder,
    found.unit,
    found.acquisition,
    found.n_samples,
    found.intra_distance,
    found.median_distance,
    attributes.* EXCLUDE (benchmark, unit)
FROM main.unit_files AS found
LEFT JOIN unit_attributes_but([
    'encoder', 'acquisition', 'n_samples', 'intra_distance', 'median_distance'
]) AS attributes ON attributes.benchmark = found.benchmark AND attributes.unit = found.unit;
