-- consistency_agreement: how alike the five metrics of consistency rank the encoders.
--
-- grain   one row per benchmark and two of d_cos, mr_1nn, mantel_r, intra_distance and iok_10
-- reads   consistency_summary, collapse_check, encoders
-- output  spearman: rank correlation over encoders, controls left out, of the metrics as better or worse:
--         d_cos, of which the lowest is the best, with its sign turned; intra_distance as it is, larger where
--         units lie further apart, so that a low spearman of d_cos and intra_distance says that those
--         which move least are those that are most compact; n: encoders that have both: one with a
--         collapse_reason has no d_cos here, since it would be a good one for nothing
-- NULL    spearman of fewer than two encoders, or where a metric is the same for all
-- notes   croma_sql.consistency_agreement adds intervals. As in consistency_summary, n_units must be equal.
CREATE OR REPLACE VIEW consistency_agreement AS
WITH
    turned AS (
        SELECT
            summary.benchmark,
            summary.encoder,
            [
                {
                    'metric': 'd_cos',
                    'better': CASE WHEN collapse.collapse_reason IS NULL THEN -summary.d_cos END
                },
                {'metric': 'mr_1nn', 'better': summary.mr_1nn},
                {'metric': 'mantel_r', 'better': summary.mantel_r},
                {'metric': 'intra_distance', 'better': summary.intra_distance},
                {'metric': 'iok_10', 'better': summary.iok_10}
            ] AS metrics
        FROM main.consistency_summary AS summary
        JOIN main.encoders ON encoders.encoder = summary.encoder
        LEFT JOIN main.collapse_check AS collapse
            ON collapse.benchmark = summary.benchmark AND collapse.encoder = summary.encoder
        WHERE NOT encoders.is_control
    ),
    long AS (
        SELECT
            benchmark,
            encoder,
            generate_subscripts(metrics, 1) AS place,
            unnest(metrics).metric AS metric,
            unnest(metrics).better AS better
        FROM turned
    )
SELECT
    one.benchmark,
    one.metric AS metric_a,
    other.metric AS metric_b,
    spearman(one.better, other.better) AS spearman,
    count(one.better + other.better) AS n
FROM long AS one
JOIN long AS other
    ON other.benchmark = one.benchmark AND other.encoder = one.encoder AND other.place > one.place
GROUP BY one.benchmark, one.metric, other.metric;
