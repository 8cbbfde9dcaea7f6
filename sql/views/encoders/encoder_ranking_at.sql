-- encoder_ranking_at(m, include_harmonised := false): rank and Pareto frontier of the encoders of each
-- benchmark, at any m.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_summary_at, encoders
-- input   m: neighbours per type, 1 to the depth scored; include_harmonised: whether harmonised
--         encoders are ranked, beside those that they were made from
-- output  as croma_frontier, is_harmonised, and every other attribute of the encoder, one of a name
--         here as encoder_<name>
-- NULL    as in croma_frontier, of a harmonised encoder that is not ranked as of a control; an
--         attribute that is not known
CREATE OR REPLACE MACRO encoder_ranking_at(m, include_harmonised := false) AS TABLE
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
                    'benchmark', 'encoder', 'croma', 'ltm10', 'croma_rank', 'ltm10_rank', 'on_frontier',
                    ' always'
                )),
                COLUMNS(lambda name: name = ' always' OR lower(name) IN (
                    'benchmark', 'croma', 'ltm10', 'croma_rank', 'ltm10_rank', 'on_frontier'
                )) AS "encoder_\0"
            FROM (SELECT *, 0 AS " always" FROM main.encoders)
        )
    )
SELECT
    found.benchmark,
    found.encoder,
    found.croma,
    found.ltm10,
    attributes.is_control,
    attributes.is_harmonised,
    found.croma_rank,
    found.ltm10_rank,
    found.on_frontier,
    attributes.* EXCLUDE (encoder, is_control, is_harmonised)
FROM croma_frontier('compared', is_control := 'is_unranked') AS found
JOIN attributes ON attributes.encoder = found.encoder;
