-- operating_points: the k at which fixed-k metrics are read, chosen among all odd k.
--
-- grain   one row per benchmark and encoder
-- reads   knn_accuracy, encoders
-- output  as operating_points_of; for another grid:
--             WITH grid AS (FROM knn_accuracy_at([5, 10, 20]))
--             FROM operating_points_of('grid')
-- NULL    as in operating_points_of
CREATE OR REPLACE VIEW operating_points AS
FROM operating_points_of('main.knn_accuracy');
