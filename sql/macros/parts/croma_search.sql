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
-- search  DuckDB cannot be interrupted while it is inside a function, so a search is four calls, to
--         be read from the inside out:
--           croma_search_query()  the number of this query. It depends on no row, so DuckDB calls it
--                                 while planning, in the thread that asks: so we know whose Ctrl-C
--                                 is meant.
--           croma_search_begin    starts the search in the background; returns a ticket, above 0.
--           croma_search_wait     waits a tenth of a second; returns the ticket, below 0 once the
--                                 search is over.
--           "the croma_sql …"     gives what was found. It is called last but looked up first, so
--                                 its name is what DuckDB prints where nothing is registered, and
--                                 says what to do.
--         The three list_reduce are a loop: wait 64 x 64 x 64 times, or until the ticket is below 0.
--         list_reduce carries a value (a, b, c: the ticket) from element to element; the elements (i,
--         j, l) mean nothing. Before each, DuckDB looks whether the query has been interrupted; if
--         so, it drops the ticket, and that stops the search (udfs/jobs.py). Three lists of 64 are
--         soon skipped when the search is over; one as long as them all is not. The loop ends after
--         seven hours; then the last call waits, without interruption. It cannot be a macro of its
--         own: DuckDB looks up the functions in those that are no tables when they are created, and
--         IMPORT DATABASE would fail.
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
                    croma_search_begin(
                        sample_names, vectors, labels, confounders, group_ids, m, k,
                        on_bad_vectors::VARCHAR, current_setting('threads')::BIGINT, scope::VARCHAR,
                        {
                            'sample_id': id_column, 'embedding': vector_column,
                            'label': label_column, 'confounder': confounder_column,
                            'group_id': group_column
                        },
                        croma_search_query()
                    )
                )
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
    neighbours.nearest_label_hit,
    neighbours.nearest_confounder_hit,
    neighbours.usable,
    scope
FROM rows
WHERE neighbours.usable OR on_bad_vectors <> 'drop';
