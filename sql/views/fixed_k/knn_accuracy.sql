-- knn_accuracy: how well the k nearest neighbours predict label and confounder, for every odd k.
--
-- grain   one row per benchmark, encoder and k = 1, 3, 5, ... up to the depth to which all encoders of
--         the benchmark were scored, so that they are compared over the same grid
-- reads   neighbour_files, knn_accuracy_of
-- output  as knn_accuracy_of
-- NULL    none; a row may be missing, see knn_accuracy_of
CREATE OR REPLACE VIEW knn_accuracy AS
WITH points AS (
    SELECT benchmark, encoder, unnest(range(1, min(min(depth)) OVER (PARTITION BY benchmark) + 1, 2)) AS k
    FROM main.neighbour_files
    GROUP BY benchmark, encoder
)
FROM knn_accuracy_of('points');
