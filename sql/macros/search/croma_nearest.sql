-- croma_nearest(relation, k := 101, ...): the k nearest neighbours of any type of every row.
--
-- grain   one row per edge: sample and rank
-- input   see croma_search.sql
-- output  type is SS, SO, OS or OO: label and confounder the Same or Other. label_hit and
--         confounder_hit: whether the class that most of the neighbours up to this rank have is the
--         sample's own; a tie goes to the class that comes first by sample_id, so that
--         avg(label_hit::INTEGER) per label and rank is the recall of a k-NN vote. sample_id keeps
--         its type; neighbour_id is text, as sample_id::VARCHAR
-- NULL    none; a sample with fewer than k candidates in other groups has fewer rows
CREATE OR REPLACE MACRO croma_nearest(
    relation,
    k := 101,
    sample_id := 'sample_id',
    embedding := 'embedding',
    label := 'label',
    confounder := 'confounder',
    group_id := 'group_id',
    "by" := NULL,
    on_bad_vectors := 'error'
) AS TABLE
SELECT
    found.sample_id,
    unnest(nearest_type) AS type,
    generate_subscripts(nearest_id, 1) AS rank,
    unnest(nearest_id) AS neighbour_id,
    unnest(nearest_distance) AS distance,
    unnest(nearest_label_hit) AS label_hit,
    unnest(nearest_confounder_hit) AS confounder_hit,
    scope
FROM (
    SELECT *
    FROM croma_search(
        relation, 1, coalesce(k, error('k is NULL; leave it out to take its default')),
        sample_id, embedding, label, confounder, group_id, "by", on_bad_vectors
    )
) AS found;
