-- encoder_ranking: rank and Pareto frontier of the encoders of each benchmark, at m = 5.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_summary, encoders
-- output  as croma_frontier, and every attribute of the encoder, except one that goes by the name of
--         a column here; for another m:
--             WITH results AS (
--                 SELECT summary.*, is_control
--                 FROM encoder_summary_at(1) AS summary
--                 JOIN encoders USING (encoder)
--             )
--             FROM croma_frontier('results')
-- NULL    as in croma_frontier; an attribute that is not known
CREATE OR REPLACE VIEW encoder_ranking AS
WITH
    compared AS (
        SELECT summary.benchmark, summary.encoder, summary.croma, summary.ltm10, encoders.is_control
        FROM main.encoder_summary AS summary
        JOIN main.encoders ON encoders.encoder = summary.encoder
    ),
    attributes AS (
        SELECT COLUMNS(lambda name: name = 'encoder' OR lower(name) NOT IN (
            'benchmark', 'encoder', 'croma', 'ltm10', 'is_control', 'croma_rank', 'ltm10_rank',
            'on_frontier'
        ))
        FROM main.encoders
    )
SELECT found.*, attributes.* EXCLUDE (encoder)
FROM croma_frontier('compared') AS found
JOIN attributes USING (encoder);
