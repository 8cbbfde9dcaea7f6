-- croma_undefined_reason(usable, d_so, d_os): why a margin is NULL.
--
-- grain   scalar
-- input   usable BOOLEAN: the vector has a direction; d_so, d_os: typed means, NULL if too few
-- NULL    the margin is defined
CREATE OR REPLACE MACRO croma_undefined_reason(usable, d_so, d_os) AS
    CASE
        WHEN NOT usable THEN 'bad_vector'
        WHEN d_so IS NULL AND d_os IS NULL THEN 'too_few_so_and_os'
        WHEN d_so IS NULL THEN 'too_few_so'
        WHEN d_os IS NULL THEN 'too_few_os'
        WHEN d_so + d_os = 0 THEN 'zero_distance'
    END;
