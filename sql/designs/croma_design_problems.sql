-- croma_design_problems(relation, ...): what is wrong with a design, and what to change.
--
-- grain   one row per scope and problem
-- input   as in croma_design
-- output  problem: 'one_label', 'one_confounder', 'one_group', 'confounded' (no label is under two
--         confounders, or no confounder has two labels), 'labels_like_ids' (more labels than half the
--         rows), 'group_per_row', 'groups_span' (some groups, but not all, are under several confounders), 'undefined'
--         (rows without m SO or OS candidates, of a
--         design that none of these explains); n: rows it is about; words: a sentence with the cure
-- NULL    none; a sound design has no rows
-- notes   What the other rows of a group may not tell: 'group_per_row' and 'groups_span' can be right.
CREATE OR REPLACE MACRO croma_design_problems(
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
        SELECT scope, g, count(*) AS size, count(DISTINCT c) AS n_confounders
        FROM " rows"
        GROUP BY scope, g
    ),
    " spans" AS (
        SELECT
            scope,
            count(*) AS n_groups,
            count(*) FILTER (n_confounders > 1) AS n_spanning,
            coalesce(sum(size) FILTER (n_confounders > 1), 0)::BIGINT AS n_rows,
            min(g::VARCHAR) FILTER (n_confounders > 1) AS example
        FROM " groups"
        GROUP BY scope
    ),
    " cells" AS (
        FROM croma_design(
            relation, m := m, label := label, confounder := confounder, group_id := group_id, "by" := "by"
        )
    ),
    " scopes" AS (
        SELECT
            " cells".scope,
            sum(" cells".n)::BIGINT AS n,
            count(*) AS n_cells,
            count(DISTINCT " cells".label) AS n_labels,
            count(DISTINCT " cells".confounder) AS n_confounders,
            any_value(" cells".label)::VARCHAR AS a_label,
            any_value(" cells".confounder)::VARCHAR AS a_confounder,
            sum(" cells".n_undefined)::BIGINT AS n_undefined,
            (list(" cells".problem ORDER BY " cells".n_undefined DESC, " cells".label, " cells".confounder)
                FILTER (" cells".problem IS NOT NULL)) AS causes
        FROM " cells"
        GROUP BY " cells".scope
    ),
    " found" AS (
        SELECT
            " scopes".scope,
            unnest([
                CASE WHEN n_labels = 1 THEN {
                    'problem': 'one_label', 'n': " scopes".n,
                    'words': label || ' has one value, ''' || a_label || ''', so no sample has an OS neighbour'
                        || ': add rows of another ' || label
                } END,
                CASE WHEN n_confounders = 1 THEN {
                    'problem': 'one_confounder', 'n': " scopes".n,
                    'words': confounder || ' has one value, ''' || a_confounder || ''', so no sample has an '
                        || 'SO neighbour: add rows of another ' || confounder
                } END,
                CASE WHEN n_groups = 1 AND " scopes".n > 1 THEN {
                    'problem': 'one_group', 'n': " scopes".n,
                    'words': 'all rows have one ' || group_id || ', and neighbours come from other groups: '
                        || 'take the slide or the patient as ' || group_id
                } END,
                CASE WHEN n_labels > 1 AND n_confounders > 1 AND n_cells IN (n_labels, n_confounders) THEN {
                    'problem': 'confounded', 'n': " scopes".n,
                    'words': CASE
                        WHEN n_cells = n_labels AND n_cells = n_confounders
                        THEN 'each ' || label || ' is at a ' || confounder || ' of its own'
                        WHEN n_cells = n_labels THEN 'no ' || label || ' occurs at two values of ' || confounder
                        ELSE 'no ' || confounder || ' has two values of ' || label
                    END || ', so the two cannot be told apart and no sample has a margin: add rows that '
                        || 'cross them, or take another confounder'
                } END,
                CASE WHEN n_labels > 2 AND 2 * n_labels > " scopes".n THEN {
                    'problem': 'labels_like_ids', 'n': " scopes".n,
                    'words': label || ' has ' || n_labels || ' values in ' || " scopes".n || ' rows, as an id or a '
                        || 'measurement has: take a class, or bins of it'
                } END,
                CASE WHEN n_groups = " scopes".n AND n_groups > 1 THEN {
                    'problem': 'group_per_row', 'n': " scopes".n,
                    'words': 'every row has a ' || group_id || ' of its own, so no neighbour is excluded: right '
                        || 'for slides or patients; of tiles take the slide or the patient, as tiles of '
                        || 'one slide are not independent'
                } END,
                CASE WHEN n_spanning BETWEEN 1 AND n_groups - 1 THEN {
                    'problem': 'groups_span', 'n': n_rows,
                    'words': n_spanning || ' of ' || n_groups || ' groups, as ''' || example || ''', occur at several '
                        || 'values of ' || confounder || ': if these are different slides under one name, '
                        || 'write ' || group_id || ' as (' || confounder || ', ' || group_id || ')::VARCHAR'
                } END,
                CASE WHEN n_undefined > 0
                    AND n_labels > 1 AND n_confounders > 1 AND n_groups > 1
                    AND n_cells NOT IN (n_labels, n_confounders)
                THEN {
                    'problem': 'undefined', 'n': n_undefined,
                    'words': n_undefined || ' of ' || " scopes".n || ' samples cannot have a margin at m = ' || m
                        || ': ' || array_to_string(causes[:3], '; ')
                        || CASE WHEN len(causes) > 3 THEN '; ...' ELSE '' END
                } END
            ]) AS one
        FROM " scopes"
        JOIN " spans" ON " spans".scope IS NOT DISTINCT FROM " scopes".scope
    )
SELECT scope, one.problem, one.n, one.words
FROM " found"
WHERE one IS NOT NULL;
