-- encoder_mean_ranks_at(m, include_harmonised := false): encoders over all benchmarks of the warehouse,
-- by their mean ranks at any m.
--
-- grain   one row per scored encoder
-- reads   encoder_summary_at, encoders
-- input   m: neighbours per type, 1 to the depth scored; include_harmonised: whether harmonised
--         encoders are ranked, beside those that they were made from
-- output  as croma_mean_ranks, is_harmonised, and every other attribute of the encoder, one of a name
--         here as encoder_<name>
-- NULL    as in croma_mean_ranks, of a harmonised encoder that is not ranked as of a control; an
--         attribute that is not known
CREATE OR REPLACE MACRO encoder_mean_ranks_at(m, include_harmonised := false) AS TABLE
WITH
    compared AS (
        SELECT
            summary.benchmark,
            summary.encoder,
            summary.croma,
            summary.ltm10,
            encoders.is_control OR (summary.is_harmonised AND NOT include_harmonised) AS is_unranked
        FROM encoder_summary_at(m) AS summary
        JOIN main.encoders ON encoders.encoder = summary.encoder
    ),
    attributes AS (
        SELECT * EXCLUDE ("encoder_ always")
        FROM (
            SELECT
                COLUMNS(lambda name: name = 'encoder' OR lower(name) NOT IN (
                    'encoder', 'n_benchmarks', 'croma_rank', 'ltm10_rank', 'mean_rank', 'on_frontier',
                    ' always'
                )),
                COLUMNS(lambda name: name = ' always' OR lower(name) IN (
                    'n_benchmarks', 'croma_rank', 'ltm10_rank', 'mean_rank', 'on_frontier'
                )) AS "encoder_\0"
            FROM (SELECT *, 0 AS " always" FROM main.encoders)
        )
    )
SELECT
    found.encoder,
    attributes.is_control,
    attributes.is_harmonised,
    found.n_benchmarks,
    found.croma_rank,
    found.ltm10_rank,
    found.mean_rank,
    found.on_frontier,
    attributes.* EXCLUDE (encoder, is_control, is_harmonised)
FROM croma_mean_ranks('compared', is_control := 'is_unranked') AS found
JOIN attributes ON attributes.encoder = found.encoder;
