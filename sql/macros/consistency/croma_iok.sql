-- croma_iok(relation, k := NULL, ...): share of the K nearest neighbours of a unit that it keeps under every
-- acquisition, intersection over K.
--
-- grain   one row per unit and K
-- input   as croma_unit_pairs; k: a number, or a list of them, each less than there are units; NULL: every K
--         up to the other units, but 1,000 at most. The paper's IoK is the mean over units:
--             SELECT k, avg(iok) FROM croma_iok('scans') GROUP BY k ORDER BY k
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
SELECT unit_names[one.unit] AS unit, asked AS k, n_shared, n_shared / asked AS iok, scope
FROM (
    SELECT *, len(list_filter(one.shared_at, LAMBDA place: place <= asked)) AS n_shared
    FROM (
        SELECT *, unnest(coalesce(asked_for, range(1, one.depth + 1))) AS asked
        FROM (
            SELECT
                scope,
                unit_names,
                unnest(found.unit_neighbourhoods) AS one,
                ('[' || trim(k::VARCHAR, '[]') || ']')::BIGINT[] AS asked_for
            FROM croma_consistency(
                relation, unit, acquisition, embedding, "by", incomplete, on_bad_vectors, 0, 0,
                CASE
                    WHEN k IS NULL THEN NULL
                    WHEN regexp_full_match(k::VARCHAR, '\[?[1-9][0-9]*(, [1-9][0-9]*)*\]?') THEN
                        list_max(('[' || trim(k::VARCHAR, '[]') || ']')::BIGINT[])
                    ELSE error(
                        'croma_iok: k is ' || k::VARCHAR
                        || '; it is a whole number, 1 or more, or a list of such numbers'
                    )
                END
            )
        )
    )
);
