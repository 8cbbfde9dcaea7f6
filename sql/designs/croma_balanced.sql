-- croma_balanced(relation, n, seed := 0, ...): n rows of every cell of label and confounder.
--
-- grain   one row per row of the relation that is drawn, with all its columns
-- input   see croma_design_rows; n: rows per cell; seed: another one draws other rows; label,
--         confounder and sample_id name columns. A cell of fewer than n rows is an error that names
--         it; one of none is no cell.
-- NULL    a NULL label, confounder or sample_id is an error; other columns are as they were
-- notes   Drawn are the rows whose md5 of seed and sample_id comes first: the same in any order of
--         rows, any version and any larger relation whose other rows lie in other cells. So it goes
--         before a design:
--             WITH drawn AS (
--                 FROM croma_balanced('samples', 100, seed := 1, label := 'class',
--                                     confounder := 'centre')
--             )
--             FROM croma_quartets('drawn', label := 'class', confounder := 'centre',
--                                 group_id := 'slide')
CREATE OR REPLACE MACRO croma_balanced(
    relation,
    n,
    seed := 0,
    label := 'label',
    confounder := 'confounder',
    sample_id := 'sample_id'
) AS TABLE
WITH
    " cells" AS (
        SELECT
            " rows".label,
            " rows".confounder,
            count(*) AS size
        FROM croma_design_rows(relation, label, confounder, sample_id, sample_id) AS " rows"
        GROUP BY " rows".label, " rows".confounder
    ),
    " repeated" AS (
        SELECT count(*) - count(DISTINCT " row"[sample_id]) AS n_repeated
        FROM query_table(relation) AS " row"
    )
SELECT *
FROM query_table(relation) AS " row"
WHERE (
    SELECT
        CASE
            WHEN n < 1 OR n <> floor(n) THEN error(
                'croma_balanced: n is ' || n
                || '; it is the number of rows per cell, a whole number of at least 1'
            )
            WHEN seed IS NULL THEN error('croma_balanced: seed is NULL; leave it out, or give any value')
            WHEN any_value(n_repeated) > 0 THEN error(
                'croma_balanced: column "' || sample_id || '" is not unique: ' || any_value(n_repeated)
                || ' row(s) have the id of another. Draw before a join repeats rows'
            )
            WHEN min(size) < n THEN error(
                'croma_balanced: n is ' || n || ', but ' || count(*) FILTER (size < n)
                || ' cell(s) have fewer rows: ' || array_to_string(
                    (list(
                        croma_quoted(" cells".label) || ' under ' || croma_quoted(" cells".confounder)
                        || ' has ' || size
                        ORDER BY size ASC, " cells".label ASC, " cells".confounder ASC
                    ) FILTER (size < n))[:5],
                    ', '
                )
                || CASE WHEN count(*) FILTER (size < n) > 5 THEN ', ...' ELSE '' END
                || '. Draw at most ' || min(size) || ', or leave these cells out'
            )
            ELSE true
        END
    FROM " cells", " repeated"
)
QUALIFY row_number() OVER (
    PARTITION BY " row"[label], " row"[confounder]
    ORDER BY md5(seed::VARCHAR || ' ' || " row"[sample_id]::VARCHAR) ASC
) <= coalesce(n, error('croma_balanced: n is NULL; it is the number of rows per cell'));
