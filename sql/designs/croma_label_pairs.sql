-- croma_label_pairs(relation, ...): all pairs of labels, each over all confounders.
--
-- grain   one row per pair of labels and row of the relation that has one of them
-- input   see croma_design_rows; the other arguments name columns
-- output  a benchmark: sample_id, label, confounder, group_id, and subset, 'A | B'
-- NULL    none; a NULL in the relation is an error
-- notes   Six ISUP grades make 15 pairs. A pair of which a label is missing under a confounder is
--         built all the same, and refused when it is made a benchmark: leave the label or the
--         confounder out, or compare under two confounders at a time (croma_quartets).
-- source  Grisi et al. 2026, pairs of ISUP grades
CREATE OR REPLACE MACRO croma_label_pairs(
    relation,
    label := 'label',
    confounder := 'confounder',
    group_id := 'group_id',
    sample_id := 'sample_id'
) AS TABLE
WITH
    " rows" AS (
        FROM croma_design_rows(relation, label, confounder, group_id, sample_id)
    ),
    labels AS (
        SELECT DISTINCT " rows".label
        FROM " rows"
    ),
    pairs AS (
        SELECT
            unnest([one.label, two.label]) AS label,
            croma_quoted(one.label) || ' | ' || croma_quoted(two.label) AS subset
        FROM labels AS one
        JOIN labels AS two ON one.label < two.label
    )
SELECT " rows".sample_id, " rows".label, " rows".confounder, " rows".group_id, pairs.subset
FROM " rows"
JOIN pairs ON " rows".label = pairs.label;
