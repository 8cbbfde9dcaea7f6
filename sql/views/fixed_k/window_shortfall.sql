-- window_shortfall: how far the shared median k falls short of the neighbours that RI counts.
--
-- grain   one row per benchmark and encoder
-- reads   operating_points, window_shortfall_of
-- output  as window_shortfall_of
-- NULL    as in window_shortfall_of; no row for what has not been scored with --k
CREATE OR REPLACE VIEW window_shortfall AS
WITH points AS (SELECT benchmark, encoder, median_k AS k FROM main.operating_points)
FROM window_shortfall_of('points');
