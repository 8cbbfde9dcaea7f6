-- croma_frontier(relation, ...): rank and Pareto frontier of the encoders of each benchmark.
--
-- grain   one row per row of the relation: benchmark and encoder
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; benchmark,
--         encoder, croma, ltm10, is_control: names of its columns. benchmark := NULL: all rows are
--         one benchmark; is_control := NULL: no encoder is a control.
-- output  croma_rank, ltm10_rank: 1 is the best, equals share their mean rank; on_frontier: no
--         encoder is at least as good on both croma and ltm10 and better on one (croma_dominates)
-- NULL    ranks of a control, which is shown, never ranked, and never on the frontier; ranks and
--         on_frontier where croma or ltm10 is NULL or NaN. A NULL is_control is false.
-- source  Grisi et al. 2026, section 3.3
-- notes   Inside a macro an unqualified name is the parameter of that name, hence placed.croma.
CREATE OR REPLACE MACRO croma_frontier(
    relation,
    benchmark := 'benchmark',
    encoder := 'encoder',
    croma := 'croma',
    ltm10 := 'ltm10',
    is_control := 'is_control'
) AS TABLE
WITH
    results AS (
        SELECT
            " row"[coalesce(benchmark, ' nothing')] AS benchmark,
            " row"[encoder] AS encoder,
            nullif(" row"[croma]::DOUBLE, 'nan'::DOUBLE) AS croma,
            nullif(" row"[ltm10]::DOUBLE, 'nan'::DOUBLE) AS ltm10,
            coalesce(" row"[coalesce(is_control, ' nothing')]::BOOLEAN, false) AS is_control
        FROM (SELECT *, NULL::VARCHAR AS " nothing" FROM query_table(relation)) AS " row"
    ),
    placed AS MATERIALIZED (
        SELECT
            *,
            results.croma + results.ltm10 IS NOT NULL AS is_placed,
            is_placed AND NOT results.is_control AS competes
        FROM results
    ),
    ranked AS (
        SELECT
            *,
            rank() OVER best_croma + (count(*) OVER same_croma - 1) / 2 AS croma_rank,
            rank() OVER best_ltm10 + (count(*) OVER same_ltm10 - 1) / 2 AS ltm10_rank,
            NOT EXISTS (
                FROM placed AS other
                WHERE other.competes
                    AND other.benchmark IS NOT DISTINCT FROM placed.benchmark
                    AND croma_dominates(other.croma, other.ltm10, placed.croma, placed.ltm10)
            ) AS is_undominated
        FROM placed
        WINDOW
            best_croma AS (PARTITION BY placed.benchmark, competes ORDER BY placed.croma DESC NULLS LAST),
            same_croma AS (PARTITION BY placed.benchmark, competes, placed.croma),
            best_ltm10 AS (PARTITION BY placed.benchmark, competes ORDER BY placed.ltm10 DESC NULLS LAST),
            same_ltm10 AS (PARTITION BY placed.benchmark, competes, placed.ltm10)
    )
SELECT
    ranked.benchmark,
    ranked.encoder,
    ranked.croma,
    ranked.ltm10,
    ranked.is_control,
    CASE WHEN competes THEN croma_rank END AS croma_rank,
    CASE WHEN competes THEN ltm10_rank END AS ltm10_rank,
    CASE WHEN is_placed OR ranked.is_control THEN competes AND is_undominated END AS on_frontier
FROM ranked;
