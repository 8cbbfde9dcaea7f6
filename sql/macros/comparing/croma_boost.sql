-- croma_boost(relation, exposed, unexposed, ...): what each encoder gains from one cohort to another.
--
-- grain   one row per encoder of the relation
-- input   relation: name of a table, view, CTE, Parquet path or registered frame with one row per
--         cohort and encoder, such as encoder_summary; exposed, unexposed: two of its cohorts, say
--         one that encoders have seen in pretraining and one that none has; benchmark, encoder,
--         croma: names of its columns of cohort, encoder and median margin
-- output  croma_exposed, croma_unexposed: the medians; boost: the ratio of their typed-distance odds
--         (croma_odds), above 1 where distractors lie further off, relative to matches, in exposed
-- NULL    a median of a cohort in which the encoder is not, and then the boost; the boost where the
--         odds of unexposed are 0 or one of them has none
-- source  Grisi et al. 2026, supplementary table 10
CREATE OR REPLACE MACRO croma_boost(
    relation,
    exposed,
    unexposed,
    benchmark := 'benchmark',
    encoder := 'encoder',
    croma := 'croma'
) AS TABLE
WITH
    results AS (
        SELECT
            " row"[benchmark]::VARCHAR AS cohort,
            " row"[encoder] AS encoder,
            nullif(" row"[croma]::DOUBLE, 'nan'::DOUBLE) AS croma
        FROM query_table(relation) AS " row"
    ),
    compared AS (
        SELECT
            results.encoder,
            any_value(results.croma) FILTER (cohort = exposed::VARCHAR) AS croma_exposed,
            any_value(results.croma) FILTER (cohort = unexposed::VARCHAR) AS croma_unexposed,
            count(*) FILTER (cohort = exposed::VARCHAR) AS n_exposed,
            count(*) FILTER (cohort = unexposed::VARCHAR) AS n_unexposed
        FROM results
        GROUP BY results.encoder
    )
SELECT
    compared.encoder,
    croma_exposed,
    croma_unexposed,
    CASE
        WHEN sum(n_exposed) OVER () = 0 THEN error(
            'croma_boost: no row is of cohort ' || coalesce('''' || exposed || '''', 'NULL')
            || '; exposed is a value of column ' || benchmark
        )
        WHEN sum(n_unexposed) OVER () = 0 THEN error(
            'croma_boost: no row is of cohort ' || coalesce('''' || unexposed || '''', 'NULL')
            || '; unexposed is a value of column ' || benchmark
        )
        WHEN n_exposed > 1 OR n_unexposed > 1 THEN error(
            'croma_boost: encoder ''' || compared.encoder || ''' stands in several rows of one cohort; '
            || 'leave one row per cohort and encoder'
        )
        ELSE croma_odds(croma_exposed) / nullif(croma_odds(croma_unexposed), 0)
    END AS boost
FROM compared;
