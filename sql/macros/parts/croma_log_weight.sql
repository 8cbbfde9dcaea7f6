-- croma_log_weight(distances, tau): logarithm of the sum of exp(-distance / tau).
--
-- grain   scalar
-- input   distances DOUBLE[], nearest first; tau above 0
-- NULL    no distances
-- notes   The nearest is factored out, so that the sum is at least 1 where every weight underflows.
CREATE OR REPLACE MACRO croma_log_weight(distances, tau) AS
    -distances[1] / tau
    + ln(list_sum(list_transform(distances, lambda d: exp((distances[1] - d) / tau))));
