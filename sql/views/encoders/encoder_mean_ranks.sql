-- encoder_mean_ranks: encoders over all benchmarks of the warehouse, by their mean ranks at m = 5.
--
-- grain   one row per scored encoder
-- reads   encoder_mean_ranks_at(5)
-- output  as encoder_mean_ranks_at; for some benchmarks:
--             WITH results AS (
--                 FROM encoder_ranking WHERE NOT is_harmonised AND benchmark IN ('scanner', 'centre')
--             )
--             FROM croma_mean_ranks('results')
-- NULL    as in encoder_mean_ranks_at
CREATE OR REPLACE VIEW encoder_mean_ranks AS
FROM encoder_mean_ranks_at(5);
