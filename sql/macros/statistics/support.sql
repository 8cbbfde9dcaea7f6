-- support(n_so, n_os): fraction of samples for which RI and MaRI are defined, those with a SO or OS.
--
-- grain   aggregate: one value per group
-- input   counts of SO and OS neighbours per sample
-- NULL    a NULL count (a sample without a vector) is left out; no sample at all gives NULL
-- source  Grisi et al. 2026
CREATE OR REPLACE MACRO support(n_so, n_os) AS
    avg((n_so + n_os > 0)::INTEGER);
