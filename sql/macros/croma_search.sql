-- croma_search(relation, ...): the search over any relation; croma_margins, croma_neighbours and
-- croma_nearest are what users call.
--
-- grain   one row per row of the relation (on_bad_vectors 'drop': that has a usable vector), with
--         lists of its m nearest SO and OS neighbours, and of its k nearest of any type
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; the ..._column
--         arguments name its columns. Each value of scope_column is scored by itself; NULL: all rows
--         are one scope.
-- NULL    k: no neighbours of any type, for which all pairs have to be measured, are searched;
--         a NULL label, confounder, group or sample_id is an error that names the rows. A NULL
--         vector is a bad vector: see on_bad_vectors ('error', 'drop', 'null').
-- output  sample_id, label, confounder, group_id and scope keep their types; neighbour ids are text.
-- notes   " row" and " everything" begin with a blank so that no column of the relation is meant.
--         The quoted function is the compiled kernel. Its name is what DuckDB prints where it has
--         not been registered, so it says what to do.
CREATE OR REPLACE MACRO croma_search(
    relation, m, k, id_column, vector_column, label_column, confounder_column, group_column,
    scope_column, on_bad_vectors
) AS TABLE
WITH
    scopes AS (
        SELECT
            scope,
            list(sample_id) AS sample_ids,
            list(sample_id::VARCHAR) AS sample_names,
            list(vector) AS vectors,
            list(label) AS labels,
            list(confounder) AS confounders,
            list(group_id) AS group_ids
        FROM (
            SELECT
                " row"[coalesce(scope_column, ' everything')] AS scope,
                " row"[id_column] AS sample_id,
                " row"[vector_column] AS vector,
                " row"[label_column] AS label,
                " row"[confounder_column] AS confounder,
                " row"[group_column] AS group_id
            FROM (SELECT *, NULL::VARCHAR AS " everything" FROM query_table(relation)) AS " row"
        )
        GROUP BY scope
    ),
    searched AS (
        SELECT
            *,
            "the croma_sql kernel (to add it, run in python: import croma_sql; croma_sql.register(con))"(
                sample_names, vectors, labels, confounders, group_ids, m, k, on_bad_vectors::VARCHAR,
                current_setting('threads')::BIGINT, scope::VARCHAR,
                {
                    'sample_id': id_column, 'embedding': vector_column, 'label': label_column,
                    'confounder': confounder_column, 'group_id': group_column
                }
            ) AS neighbours
        FROM scopes
    ),
    rows AS (
        SELECT
            unnest(sample_ids) AS sample_id,
            unnest(labels) AS label,
            unnest(confounders) AS confounder,
            unnest(group_ids) AS group_id,
            unnest(neighbours) AS neighbours,
            scope
        FROM searched
    )
SELECT
    sample_id,
    label,
    confounder,
    group_id,
    neighbours.so_id,
    neighbours.so_distance,
    neighbours.os_id,
    neighbours.os_distance,
    neighbours.nearest_id,
    neighbours.nearest_type,
    neighbours.nearest_distance,
    neighbours.usable,
    scope
FROM rows
WHERE neighbours.usable OR on_bad_vectors <> 'drop';
