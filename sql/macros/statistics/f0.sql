-- f0(x): F(0), the fraction of margins at or below zero (the confounder is at least as close).
--
-- grain   aggregate: one value per group; also OVER (...)
-- input   x DOUBLE, margins
-- NULL    an undefined margin (NULL, or NaN from elsewhere) is left out of numerator and denominator;
--         no defined margin at all gives NULL. Count what was left out with count(*) - count(x).
-- source  Grisi et al. 2026; the boundary is closed (croma 0.2.0 and later): 0 counts as fragile
CREATE OR REPLACE MACRO f0(x) AS
    avg((x <= 0)::INTEGER) FILTER (NOT isnan(x::DOUBLE));
