-- croma_quartets(relation, ...): all complete quartets, two labels under two confounders.
--
-- grain   one row per quartet and row of the relation that is in it
-- input   see croma_design_rows; the other arguments name columns
-- output  a benchmark: sample_id, label, confounder, group_id, and subset, 'A | B under X | Y'
-- NULL    none; a NULL in the relation is an error
-- notes   A quartet of which a cell is empty is not built. As a benchmark:
--             FROM croma_quartets('samples', label := 'class', confounder := 'centre',
--                                 group_id := 'slide')
-- source  Grisi et al. 2026, paired 2 x 2 evaluation
CREATE OR REPLACE MACRO croma_quartets(
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
    cells AS (
        SELECT DISTINCT " rows".label, " rows".confounder
        FROM " rows"
    ),
    pairs AS (
        SELECT
            one.label AS first_label,
            two.label AS second_label,
            one.confounder
        FROM cells AS one
        JOIN cells AS two ON one.confounder = two.confounder AND one.label < two.label
    ),
    quartets AS (
        SELECT
            one.first_label,
            one.second_label,
            one.confounder AS first_confounder,
            two.confounder AS second_confounder,
            croma_quoted(one.first_label) || ' | ' || croma_quoted(one.second_label)
            || ' under '
            || croma_quoted(one.confounder) || ' | ' || croma_quoted(two.confounder) AS subset
        FROM pairs AS one
        JOIN pairs AS two
            ON one.first_label = two.first_label
            AND one.second_label = two.second_label
            AND one.confounder < two.confounder
    ),
    corners AS (
        SELECT
            subset,
            unnest([first_label, second_label, first_label, second_label]) AS label,
            unnest(
                [first_confounder, first_confounder, second_confounder, second_confounder]
            ) AS confounder
        FROM quartets
    )
SELECT " rows".sample_id, " rows".label, " rows".confounder, " rows".group_id, corners.subset
FROM " rows"
JOIN corners
    ON " rows".label = corners.label
    AND " rows".confounder = corners.confounder;
