-- croma_unit_pairs(relation, unit := 'unit', ...): how far every unit moves from one acquisition to another.
--
-- grain   one row per unit and ordered pair of acquisitions
-- input   see croma_consistency.sql; by := 'encoder' compares each encoder by itself. The vector of a unit
--         under an acquisition is the mean of its rows'. incomplete, of units that lack an acquisition:
--         'error'; 'drop' leaves them out; 'pairwise' compares each pair of acquisitions on the units that
--         have both, so that rank and nearest_unit are among these, and croma_iok on those that have all
-- output  distance: cosine distance of the unit's two vectors; rank: of the unit itself among all units
--         under acquisition_b by distance from its vector under acquisition_a, ties by unit as text; the
--         share of rank 1 is the 1-NN match rate; nearest_unit: the first of them; profile_r: Pearson's r of
--         its distances to all other units under a and under b. Units and acquisitions keep their types
-- NULL    profile_r where distances do not differ by more than rounding, as with two units; scope without by
-- source  Scanner-Induced Domain Shifts Undermine the Robustness of Pathology Foundation Models, 2026, eq. 2, 3
CREATE OR REPLACE MACRO croma_unit_pairs(
    relation,
    unit := 'unit',
    acquisition := 'acquisition',
    embedding := 'embedding',
    "by" := NULL,
    incomplete := 'error',
    on_bad_vectors := 'error'
) AS TABLE
SELECT
    unit_names[pair.unit] AS unit,
    acquisition_names[pair.acquisition_a] AS acquisition_a,
    acquisition_names[pair.acquisition_b] AS acquisition_b,
    pair.distance,
    pair.rank,
    unit_names[pair.nearest_unit] AS nearest_unit,
    pair.profile_r,
    scope
FROM (
    SELECT scope, unit_names, acquisition_names, unnest(found.unit_pairs) AS pair
    FROM croma_consistency(
        relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, 0, 0, 0
    )
);
