-- croma_isolated(relation, match, ...): one confounder by itself, while others are held constant.
--
-- grain   one row per row of the relation whose stratum has two labels and two confounders
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; match: the name, or
--         a list of names, of the columns in which neighbours must agree, spelt as they are there;
--         the other arguments name columns. Rows that agree in all of match are one stratum.
-- output  a benchmark: sample_id, label, confounder, group_id, and match_... for each column of match
-- NULL    passed on; a benchmark refuses them by name
-- notes   A stratum of one label or one confounder (a centre with one scanner) says nothing of the
--         confounder and is left out. Scanners and centres that are crossed make two benchmarks:
--             FROM croma_isolated('samples', 'centre', label := 'class', confounder := 'scanner',
--                                 group_id := 'slide')
--         and
--             FROM croma_isolated('samples', 'scanner', label := 'class', confounder := 'centre',
--                                 group_id := 'slide')
--         croma_margins and its like match one column with by := 'centre'; there, a stratum of one label
--         or one confounder is an error. DuckDB has no selection of no columns, hence " always".
CREATE OR REPLACE MACRO croma_isolated(
    relation,
    match,
    label := 'label',
    confounder := 'confounder',
    group_id := 'group_id',
    sample_id := 'sample_id'
) AS TABLE
WITH
    " rows" AS (
        SELECT
            " row"[sample_id] AS sample_id,
            " row"[label] AS label,
            " row"[confounder] AS confounder,
            " row"[group_id] AS group_id,
            COLUMNS(
                lambda name: name = ' always' OR coalesce(json_contains(to_json(match), to_json(name)), false)
            ) AS "match_\0",
            json_array(*COLUMNS(
                lambda name: name = ' always' OR coalesce(json_contains(to_json(match), to_json(name)), false)
            )) AS " stratum"
        FROM (SELECT *, 0 AS " always" FROM query_table(relation)) AS " row"
    )
SELECT * EXCLUDE ("match_ always", " stratum")
FROM " rows"
WHERE CASE
    WHEN json_array_length(" stratum") - 1 < coalesce(nullif(json_array_length(to_json(match)), 0), 1)
    THEN error(
        'croma_isolated: match is ' || coalesce(to_json(match)::VARCHAR, 'NULL') || ', but only '
        || json_array_length(" stratum") - 1 || ' of these is a column; spell each as it is there, once'
    )
    ELSE true
END
WINDOW " alike" AS (PARTITION BY " stratum")
QUALIFY (
        min(" rows".label) OVER " alike" <> max(" rows".label) OVER " alike"
        AND min(" rows".confounder) OVER " alike" <> max(" rows".confounder) OVER " alike"
    )
    OR " rows".label IS NULL
    OR " rows".confounder IS NULL
    OR json_contains(" stratum", 'null');
