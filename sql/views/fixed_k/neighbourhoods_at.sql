-- neighbourhoods_at(k, tau := NULL): what is among the k nearest neighbours of every sample, the same
-- k for every benchmark and encoder.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   neighbour_files, neighbourhoods_of
-- input   k: 1 to the depth scored (croma-sql score --k); more is an error. tau: see neighbourhoods_of
-- output  as neighbourhoods_of
-- NULL    as in neighbourhoods_of
CREATE OR REPLACE MACRO neighbourhoods_at(k, tau := NULL) AS TABLE
WITH points AS (
    SELECT DISTINCT neighbour_files.benchmark, neighbour_files.encoder, k AS k
    FROM main.neighbour_files
)
FROM neighbourhoods_of('points', tau := tau);
