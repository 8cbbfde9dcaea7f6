-- croma_iok(relation, k := NULL, ...): share of the K nearest neighbours of a unit that it keeps under every
-- acquisition, intersection over K.
--
-- grain   one row per unit and K
-- input   as croma_unit_pairs; k: a number, or a list of them, each less than there are units; NULL: every K
--         up to the other units, but 1,000 at most. The paper's IoK is the mean over units:
--             SELECT k, sum(n_shared) / sum(k) AS iok FROM croma_iok('scans') GROUP BY k ORDER BY k
-- output  n_shared: neighbours among the k nearest under every acquisition; iok: n_shared / k
-- NULL    scope without by
-- source  Scanner-Induced Domain Shifts Undermine the Robustness of Pathology Foundation Models, 2026, eq. 7
CREATE OR REPLACE MACRO croma_iok(
    relation,
    k := NULL,
    unit := 'unit',
    acquisition := 'acquisition',
    embedding := 'embedding',
    "by" := NULL,
    incomplete := 'error',
    on_bad_vectors := 'error'
) AS TABLE
WITH
    compared AS MATERIALIZED (
        SELECT
            scope,
            unit_names,
            unnest(found.unit_neighbourhoods) AS one,
            TRY_CAST('[' || trim(k::VARCHAR, '[]') || ']' AS BIGINT[]) AS asked
        FROM croma_consistency(
            relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, 0, 0,
            CASE
                WHEN k IS NULL THEN NULL
                WHEN regexp_full_match(k::VARCHAR, '\[?[1-9][0-9]{0,8}(, [1-9][0-9]{0,8})*\]?') THEN
                    list_max(TRY_CAST('[' || trim(k::VARCHAR, '[]') || ']' AS BIGINT[]))
                ELSE error(
                    'croma_iok: k is ' || k::VARCHAR || '; it is a whole number, 1 or more and less '
                    || 'than there are units, or a list of such numbers'
                )
            END
        )
    ),
    steps AS (
        SELECT scope, one.unit AS place, unnest(range(1, one.depth + 1)) AS reached, 0 AS n
        FROM compared
        UNION ALL
        SELECT scope, one.unit, unnest(one.shared_at), 1
        FROM compared
    ),
    running AS (
        SELECT
            scope,
            place,
            reached,
            (sum(sum(n)) OVER (PARTITION BY scope, place ORDER BY reached))::BIGINT AS n_shared
        FROM steps
        GROUP BY scope, place, reached
    )
SELECT unit_names[place] AS unit, reached AS k, n_shared, n_shared / reached AS iok, running.scope
FROM running
JOIN compared ON compared.scope IS NOT DISTINCT FROM running.scope AND compared.one.unit = place
WHERE asked IS NULL OR list_contains(asked, reached);
