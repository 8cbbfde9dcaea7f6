-- croma_consistency(relation, ...): the comparison of units across acquisitions over any relation;
-- croma_unit_pairs, croma_units, croma_iok and croma_acquisition_pairs are what users call.
--
-- grain   one row per scope
-- input   relation: name of a table, view, CTE, Parquet path or registered frame, one row per sample; the
--         ..._column arguments name its columns. Each value of scope_column is compared by itself;
--         NULL: all rows are one scope. depth: neighbours that may be shared; 0: none are looked for;
--         NULL: all other units, but 1,000 at most
-- NULL    a NULL unit or acquisition is an error that names the rows. A NULL vector is a bad vector: see
--         on_bad_vectors ('error', 'drop').
-- output  unit_names, acquisition_names: of all rows of the scope, in their types; found: lists of rows,
--         in which unit, acquisition and nearest_unit are places in these
-- notes   " row" and " everything" begin with a blank so that no column of the relation is meant.
-- search  As in croma_search.sql, which see: croma_search_query, a function that begins, one that waits,
--         in a loop, and one that gives what was found, whose name says what to do where it is missing.
CREATE OR REPLACE MACRO croma_consistency(
    relation, unit_column, acquisition_column, vector_column, scope_column, incomplete,
    on_bad_vectors, permutations, seed, depth
) AS TABLE
WITH
    scopes AS (
        SELECT
            scope,
            list(unit_name) AS unit_names,
            list(unit_name::VARCHAR) AS units,
            list(acquisition_name) AS acquisition_names,
            list(acquisition_name::VARCHAR) AS acquisitions,
            list(vector) AS vectors
        FROM (
            SELECT
                " row"[coalesce(scope_column, ' everything')] AS scope,
                " row"[unit_column] AS unit_name,
                " row"[acquisition_column] AS acquisition_name,
                " row"[vector_column] AS vector
            FROM (SELECT *, NULL::VARCHAR AS " everything" FROM query_table(relation)) AS " row"
        )
        GROUP BY scope
    )
SELECT
    scope,
    unit_names,
    acquisition_names,
    "the croma_sql kernel of consistency (to add it, run in python: import croma_sql; croma_sql.register(con))"(
        list_reduce(
            range(64),
            LAMBDA a, i: CASE WHEN a < 0 THEN a ELSE list_reduce(
                range(64),
                LAMBDA b, j: CASE WHEN b < 0 THEN b ELSE list_reduce(
                    range(64),
                    LAMBDA c, l: CASE WHEN c < 0 THEN c ELSE croma_search_wait(c) END,
                    b
                ) END,
                a
            ) END,
            croma_consistency_begin(
                vectors, units, acquisitions, incomplete::VARCHAR, on_bad_vectors::VARCHAR,
                permutations, seed, depth, current_setting('threads')::BIGINT, scope::VARCHAR,
                {
                    'unit': unit_column, 'acquisition': acquisition_column,
                    'embedding': vector_column
                },
                croma_search_query()
            )
        )
    ) AS found
FROM scopes;
