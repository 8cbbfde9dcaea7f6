-- encoder_mean_ranks: encoders over all benchmarks of the warehouse, by their mean ranks at m = 5.
--
-- grain   one row per scored encoder
-- reads   encoder_ranking, encoders
-- output  as croma_mean_ranks, and every attribute of the encoder, except one that goes by the name
--         of a column here; for some benchmarks:
--             WITH results AS (FROM encoder_ranking WHERE benchmark IN ('scanner', 'centre'))
--             FROM croma_mean_ranks('results')
-- NULL    as in croma_mean_ranks; an attribute that is not known
CREATE OR REPLACE VIEW encoder_mean_ranks AS
WITH attributes AS (
    SELECT COLUMNS(lambda name: name = 'encoder' OR lower(name) NOT IN (
        'encoder', 'is_control', 'n_benchmarks', 'croma_rank', 'ltm10_rank', 'mean_rank',
        'on_frontier'
    ))
    FROM main.encoders
)
SELECT found.*, attributes.* EXCLUDE (encoder)
FROM croma_mean_ranks('main.encoder_ranking') AS found
JOIN attributes USING (encoder);
