-- encoder_summary: the published summaries of every scored benchmark and encoder, at m = 5.
--
-- grain   one row per benchmark and encoder
-- reads   encoder_summary_at(5)
-- NULL    a statistic without any defined margin
CREATE OR REPLACE VIEW encoder_summary AS
FROM encoder_summary_at(5);
