-- croma_unsupported_reason(usable, n_ss, n_so, n_os, n_oo): why a sample has no RI and no MaRI.
--
-- grain   scalar
-- input   usable BOOLEAN: the vector has a direction; counts of its neighbours by type
-- NULL    the sample is supported: it has a SO or an OS neighbour
-- source  Grisi et al. 2026; a sample without any neighbour counts as mixed, as in croma 1.0.1
CREATE OR REPLACE MACRO croma_unsupported_reason(usable, n_ss, n_so, n_os, n_oo) AS
    CASE
        WHEN NOT usable THEN 'bad_vector'
        WHEN n_so + n_os > 0 THEN NULL
        WHEN n_ss > n_oo THEN 'ss_dominated'
        WHEN n_oo > n_ss THEN 'oo_dominated'
        ELSE 'mixed'
    END;
