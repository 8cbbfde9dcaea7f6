-- encoder_ranking: rank and Pareto frontier of the encoders of each benchmark, at m = 5.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_ranking_at(5)
-- output  as encoder_ranking_at; harmonised encoders are shown, never ranked
-- NULL    as in encoder_ranking_at
CREATE OR REPLACE VIEW encoder_ranking AS
FROM encoder_ranking_at(5);
