-- croma_margin(d_so, d_os): (d_OS - d_SO) / (d_OS + d_SO), in [-1, 1]. Above 0 biology is closer.
--
-- grain   scalar
-- input   mean cosine distance to the m nearest SO and OS neighbours
-- NULL    either is NULL (too few neighbours), or both are 0
-- source  Grisi et al. 2026, CRoMa
CREATE OR REPLACE MACRO croma_margin(d_so, d_os) AS
    (d_os - d_so) / nullif(d_os + d_so, 0);
