-- croma_design_rows(relation, ...): what the designs need to know of every row; users call those.
--
-- grain   one row per row of the relation
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; the ..._column
--         arguments name its columns
-- NULL    a NULL is an error that names the column and the first samples: it would be in no cell
-- output  sample_id, label, confounder and group_id keep their types
-- notes   Names that begin with a blank are ours, so that no relation or column of a user is meant.
CREATE OR REPLACE MACRO croma_design_rows(
    relation, label_column, confounder_column, group_column, id_column
) AS TABLE
WITH
    " read" AS (
        SELECT
            " row"[id_column] AS sample_id,
            " row"[label_column] AS label,
            " row"[confounder_column] AS confounder,
            " row"[group_column] AS group_id
        FROM query_table(relation) AS " row"
    ),
    " missing" AS (
        SELECT
            sample_id,
            unnest([
                CASE WHEN sample_id IS NULL THEN coalesce(id_column, 'NULL') END,
                CASE WHEN label IS NULL THEN coalesce(label_column, 'NULL') END,
                CASE WHEN confounder IS NULL THEN coalesce(confounder_column, 'NULL') END,
                CASE WHEN group_id IS NULL THEN coalesce(group_column, 'NULL') END
            ]) AS column_name
        FROM " read"
        WHERE sample_id IS NULL OR label IS NULL OR confounder IS NULL OR group_id IS NULL
    )
SELECT sample_id, label, confounder, group_id
FROM " read"
WHERE (
    SELECT
        CASE
            WHEN count(*) = 0 THEN true
            ELSE error(
                'column "' || min(column_name) || '" is NULL in ' || count(*) || ' row(s), for samples '
                || array_to_string(list(coalesce(sample_id::VARCHAR, 'NULL') ORDER BY sample_id ASC)[:3], ', ')
                || CASE WHEN count(*) > 3 THEN ', ...' ELSE '' END
                || '. Leave them out (WITH known AS (FROM ... WHERE ... IS NOT NULL)), or fill the cells in'
            )
        END
    FROM " missing"
    WHERE column_name = (SELECT min(column_name) FROM " missing")
);
