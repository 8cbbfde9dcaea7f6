-- croma_neighbours(relation, m := 20, ...): the m nearest SO and OS neighbours of every row.
--
-- grain   one row per edge: sample, type and rank
-- input   see croma_search.sql
-- output  sample_id keeps its type; neighbour_id is text, as sample_id::VARCHAR
-- NULL    none; a sample with fewer than m neighbours of a type has fewer rows
CREATE OR REPLACE MACRO croma_neighbours(
    relation,
    m := 20,
    sample_id := 'sample_id',
    embedding := 'embedding',
    label := 'label',
    confounder := 'confounder',
    group_id := 'group_id',
    "by" := NULL,
    on_bad_vectors := 'error'
) AS TABLE
WITH found AS (
    SELECT *
    FROM croma_search(
        relation, m, NULL, sample_id, embedding, label, confounder, group_id, "by", on_bad_vectors
    )
)
SELECT
    found.sample_id,
    'SO' AS type,
    generate_subscripts(so_id, 1) AS rank,
    unnest(so_id) AS neighbour_id,
    unnest(so_distance) AS distance,
    scope
FROM found
UNION ALL
SELECT
    found.sample_id,
    'OS' AS type,
    generate_subscripts(os_id, 1) AS rank,
    unnest(os_id) AS neighbour_id,
    unnest(os_distance) AS distance,
    scope
FROM found;
