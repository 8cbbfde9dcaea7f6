-- croma_mean_ranks(relation, ...): encoders over several benchmarks, by their mean ranks.
--
-- grain   one row per encoder of the relation
-- input   see croma_frontier.sql; one row per benchmark and encoder
-- output  n_benchmarks: in how many the encoder has both croma and ltm10; croma_rank, ltm10_rank:
--         means over the benchmarks of its ranks in each; mean_rank: the mean of both; on_frontier:
--         no encoder is at least as good on both mean ranks and better on one
-- NULL    ranks of a control, which is shown, never ranked, and never on the frontier; ranks and
--         on_frontier of an encoder that is missing or undefined in one of the benchmarks
-- source  Grisi et al. 2026, section 3.4
-- notes   Ranks are taken among the encoders that all benchmarks have, so that a mean rank is of
--         whole panels: where each encoder lacks some benchmark, name those to compare by a WHERE.
CREATE OR REPLACE MACRO croma_mean_ranks(
    relation,
    benchmark := 'benchmark',
    encoder := 'encoder',
    croma := 'croma',
    ltm10 := 'ltm10',
    is_control := 'is_control'
) AS TABLE
WITH
    results AS MATERIALIZED (
        SELECT
            " row"[coalesce(benchmark, ' nothing')] AS benchmark,
            " row"[encoder] AS encoder,
            nullif(" row"[croma]::DOUBLE, 'nan'::DOUBLE) AS croma,
            nullif(" row"[ltm10]::DOUBLE, 'nan'::DOUBLE) AS ltm10,
            coalesce(" row"[coalesce(is_control, ' nothing')]::BOOLEAN, false) AS is_control
        FROM (SELECT *, NULL::VARCHAR AS " nothing" FROM query_table(relation)) AS " row"
    ),
    panel AS MATERIALIZED (
        SELECT
            results.encoder,
            bool_or(results.is_control) AS is_control,
            CASE
                WHEN count(*) = count(DISTINCT [results.benchmark])
                THEN count(results.croma + results.ltm10)
                ELSE error('croma_mean_ranks: encoder "' || results.encoder || '" stands in several '
                    || 'rows of one benchmark; leave one row per benchmark and encoder')
            END AS n_benchmarks
        FROM results
        GROUP BY results.encoder
    ),
    competing AS (
        SELECT results.*, n_benchmarks
        FROM results
        JOIN panel ON panel.encoder = results.encoder
        WHERE NOT panel.is_control AND results.croma + results.ltm10 IS NOT NULL
    ),
    complete AS (
        FROM competing
        WHERE n_benchmarks = (SELECT count(DISTINCT [competing.benchmark]) FROM competing)
    ),
    means AS MATERIALIZED (
        SELECT found.encoder, avg(croma_rank) AS croma_rank, avg(ltm10_rank) AS ltm10_rank
        FROM croma_frontier('complete') AS found
        GROUP BY found.encoder
    )
SELECT
    panel.encoder,
    panel.is_control,
    n_benchmarks,
    means.croma_rank,
    means.ltm10_rank,
    (means.croma_rank + means.ltm10_rank) / 2 AS mean_rank,
    CASE
        WHEN panel.is_control THEN false
        WHEN means.croma_rank IS NOT NULL THEN NOT EXISTS (
            FROM means AS other
            WHERE croma_dominates(
                -other.croma_rank, -other.ltm10_rank, -means.croma_rank, -means.ltm10_rank
            )
        )
    END AS on_frontier
FROM panel
LEFT JOIN means ON means.encoder = panel.encoder;
