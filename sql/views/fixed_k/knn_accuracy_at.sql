-- knn_accuracy_at(ks): how well the k nearest neighbours predict label and confounder, for a list of k.
--
-- grain   one row per benchmark, encoder and k
-- reads   neighbour_files, knn_accuracy_of
-- input   ks: list of k, each at most the depth scored (croma-sql score --k); more is an error
-- output  as knn_accuracy_of
-- NULL    none; a row may be missing, see knn_accuracy_of
CREATE OR REPLACE MACRO knn_accuracy_at(ks) AS TABLE
WITH points AS (
    SELECT DISTINCT benchmark, encoder, unnest(ks) AS k
    FROM main.neighbour_files
)
FROM knn_accuracy_of('points');
