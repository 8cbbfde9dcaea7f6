-- croma_acquisitions(relation, unit := 'unit', ...): how much room units take under every acquisition, and
-- under all together; where it is next to none, they are near themselves because all are near each other.
--
-- grain   one row per acquisition, and one for all of them together
-- input   as croma_unit_pairs
-- output  n_vectors; mean_distance: mean cosine distance of all pairs of them; effective_rank: exponential of
--         the entropy of the normalised singular values of the centred unit vectors
-- NULL    acquisition: all together; effective_rank where all vectors coincide; scope without by
-- source  Roy and Vetterli 2007 (effective rank)
CREATE OR REPLACE MACRO croma_acquisitions(
    relation,
    unit := 'unit',
    acquisition := 'acquisition',
    embedding := 'embedding',
    "by" := NULL,
    incomplete := 'error',
    on_bad_vectors := 'error'
) AS TABLE
SELECT
    acquisition_names[one.acquisition] AS acquisition,
    one.n_vectors,
    one.mean_distance,
    one.effective_rank,
    scope
FROM (
    SELECT scope, acquisition_names, unnest(found.acquisitions) AS one
    FROM croma_consistency(
        relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, 0, 0, 0
    )
);
