-- croma_margins(relation, m := 5, ...): the margin of every row of a relation.
--
-- grain   one row per row of the relation (on_bad_vectors := 'drop': that has a usable vector)
-- input   see croma_search.sql; by := 'encoder' scores each encoder by itself
-- NULL    margin is NULL with an undefined_reason where a type has fewer than m neighbours, all
--         typed distances are 0, or (on_bad_vectors := 'null') the vector has no direction
-- notes   Inside a macro an unqualified name is the parameter of that name, hence found.label.
-- source  Grisi et al. 2026, CRoMa
CREATE OR REPLACE MACRO croma_margins(
    relation,
    m := 5,
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
    found.label,
    found.confounder,
    found.group_id,
    d_so,
    d_os,
    croma_margin(d_so, d_os) AS margin,
    croma_undefined_reason(usable, d_so, d_os) AS undefined_reason,
    scope
FROM (
    SELECT
        *,
        croma_typed_mean(so_distance, m) AS d_so,
        croma_typed_mean(os_distance, m) AS d_os
    FROM croma_search(
        relation, m, NULL, sample_id, embedding, label, confounder, group_id, "by", on_bad_vectors
    )
) AS found;
