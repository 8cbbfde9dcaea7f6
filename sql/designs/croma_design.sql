-- croma_design(relation, ...): which rows can have a margin, counted before any vector is read.
--
-- grain   one row per scope, label and confounder that occur together
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; label, confounder,
--         group_id name columns; m: neighbours per type; by: a column, each value of which is a scope
-- output  n, n_groups: rows of the cell and their groups. so_candidates, os_candidates: the fewest
--         eligible SO (same label, other confounder, other group) and OS (other label, same
--         confounder, other group) candidates of any of its rows. n_few_so, n_few_os: its rows with
--         fewer than m of them; n_undefined: its rows with fewer than m of either, which have no margin
-- NULL    problem: every row of the cell can have a margin; a NULL label, confounder or group_id is
--         a value of its own here, which croma_margins refuses
-- notes   Every column is counted, nothing is estimated. croma_design_problems says the same of whole
--         scopes. Columns of a CTE are qualified: inside a macro a plain name is its parameter.
CREATE OR REPLACE MACRO croma_design(
    relation,
    m := 5,
    label := 'label',
    confounder := 'confounder',
    group_id := 'group_id',
    "by" := NULL
) AS TABLE
WITH
    " rows" AS (
        SELECT
            " row"[coalesce("by", ' everything')] AS scope,
            " row"[label] AS l,
            " row"[confounder] AS c,
            " row"[group_id] AS g
        FROM (SELECT *, NULL::VARCHAR AS " everything" FROM query_table(relation)) AS " row"
    ),
    " groups" AS (
        SELECT scope, l, c, g, count(*) AS size
        FROM " rows"
        GROUP BY scope, l, c, g
    ),
    " eligible" AS (
        SELECT
            *,
            (sum(size) OVER (PARTITION BY scope, l) - sum(size) OVER (PARTITION BY scope, l, c))::BIGINT
                AS elsewhere,
            (sum(size) OVER (PARTITION BY scope, c) - sum(size) OVER (PARTITION BY scope, l, c))::BIGINT
                AS others,
            (elsewhere - sum(size) OVER (PARTITION BY scope, l, g) + size)::BIGINT AS n_so,
            (others - sum(size) OVER (PARTITION BY scope, c, g) + size)::BIGINT AS n_os
        FROM " groups"
    ),
    " cells" AS (
        SELECT
            scope,
            l,
            c,
            sum(size)::BIGINT AS n,
            count(*) AS n_groups,
            min(n_so) AS so_candidates,
            min(n_os) AS os_candidates,
            coalesce(sum(size) FILTER (n_so < m), 0)::BIGINT AS n_few_so,
            coalesce(sum(size) FILTER (n_os < m), 0)::BIGINT AS n_few_os,
            coalesce(sum(size) FILTER (n_so < m OR n_os < m), 0)::BIGINT AS n_undefined,
            any_value(elsewhere) AS elsewhere,
            any_value(others) AS others,
            max(n_so) AS most_so,
            max(n_os) AS most_os,
            label || ' ' || coalesce('''' || l::VARCHAR || '''', 'NULL') AS this_label,
            confounder || ' ' || coalesce('''' || c::VARCHAR || '''', 'NULL') AS this_confounder
        FROM " eligible"
        GROUP BY scope, l, c
    )
SELECT
    scope,
    l AS label,
    c AS confounder,
    n,
    n_groups,
    so_candidates,
    os_candidates,
    n_few_so,
    n_few_os,
    n_undefined,
    nullif(concat_ws(
        '; ',
        CASE
            WHEN l IS NULL OR c IS NULL
            THEN 'NULL is no ' || CASE WHEN l IS NULL THEN label ELSE confounder END
                || ': leave these rows out, or fill the cells in'
        END,
        CASE
            WHEN n_few_so = 0 THEN NULL
            WHEN elsewhere = 0
            THEN n_few_so || ' have no SO candidate because ' || this_label || ' occurs at '
                || this_confounder || ' only: add rows of it from elsewhere, or leave it out'
            WHEN most_so = 0
            THEN n_few_so || ' have no SO candidate because all other rows of ' || this_label
                || ' are in their own ' || group_id || ': add other groups, or check ' || group_id
            ELSE n_few_so || ' have fewer than ' || m || ' SO candidates: ' || this_label || ' has '
                || elsewhere || ' row(s) outside ' || this_confounder || ', ' || so_candidates
                || ' at the fewest in other groups: add rows, or ask for a smaller m'
        END,
        CASE
            WHEN n_few_os = 0 THEN NULL
            WHEN others = 0
            THEN n_few_os || ' have no OS candidate because ' || this_confounder || ' has '
                || this_label || ' only: add rows of another ' || label || ', or leave it out'
            WHEN most_os = 0
            THEN n_few_os || ' have no OS candidate because all other rows of ' || this_confounder
                || ' are in their own ' || group_id || ': add other groups, or check ' || group_id
            ELSE n_few_os || ' have fewer than ' || m || ' OS candidates: ' || this_confounder || ' has '
                || others || ' row(s) other than ' || this_label || ', ' || os_candidates
                || ' at the fewest in other groups: add rows, or ask for a smaller m'
        END
    ), '') AS problem
FROM " cells";
