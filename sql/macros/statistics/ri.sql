-- ri(n_so, n_os): Robustness Index, the share of SO among the SO and OS neighbours of a group.
--
-- grain   aggregate: one value per group; for a single sample, its own RI
-- input   counts of SO and OS neighbours per sample, or 1 and 0 per edge
-- NULL    a NULL count is left out; no SO or OS neighbour at all gives NULL
-- source  Koemen et al. 2026, PathoROB; Grisi et al. 2026, equation 3: pooled, not a mean of samples
CREATE OR REPLACE MACRO ri(n_so, n_os) AS
    sum(n_so) / nullif(sum(n_so + n_os), 0);
