-- croma_units(relation, unit := 'unit', ...): how far apart units lie under every acquisition.
--
-- grain   one row per unit and acquisition
-- input   as croma_unit_pairs
-- output  n_samples: rows that the mean vector was made of; intra_distance: mean cosine distance of the unit
--         to all other units under the same acquisition; median_distance: the median of these distances
-- NULL    scope without by
-- source  Scanner-Induced Domain Shifts Undermine the Robustness of Pathology Foundation Models, 2026, eq. 6
CREATE OR REPLACE MACRO croma_units(
    relation,
    unit := 'unit',
    acquisition := 'acquisition',
    embedding := 'embedding',
    "by" := NULL,
    incomplete := 'error',
    on_bad_vectors := 'error'
) AS TABLE
SELECT
    unit_names[one.unit] AS unit,
    acquisition_names[one.acquisition] AS acquisition,
    one.n_samples,
    one.intra_distance,
    one.median_distance,
    scope
FROM (
    SELECT scope, unit_names, acquisition_names, unnest(found.units) AS one
    FROM croma_consistency(
        relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, 0, 0, 0
    )
);
