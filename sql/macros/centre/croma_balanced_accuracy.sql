-- croma_balanced_accuracy(truth, predicted): the mean of the recalls of the classes.
--
-- grain   aggregate: one value per group; also in HAVING, ORDER BY and OVER (...)
-- input   truth, predicted: of any type in which they are compared
-- output  in [0, 1]; guessing gives 1 / number of classes
-- NULL    a row in which either is NULL or the number NaN is left out; no row left gives NULL
-- notes   A class is one that is the truth of a row. As in ltm, one aggregate serves all: it counts
--         [class, hit]; the fields of a struct could not be read in HAVING.
-- source  the same as sklearn.metrics.balanced_accuracy_score
CREATE OR REPLACE MACRO croma_balanced_accuracy(truth, predicted) AS
    list_transform(
        [histogram([truth::VARCHAR, (truth = predicted)::VARCHAR])
            FILTER (
                truth IS NOT NULL
                AND predicted IS NOT NULL
                AND NOT (typeof(truth) IN ('FLOAT', 'DOUBLE') AND truth::VARCHAR IN ('nan', '-nan'))
                AND NOT (typeof(predicted) IN ('FLOAT', 'DOUBLE') AND predicted::VARCHAR IN ('nan', '-nan'))
            )],
        lambda counts: list_avg(list_transform(
            list_sort(list_distinct(list_transform(map_keys(counts), lambda of: of[1]))),
            lambda class: coalesce(counts[[class, 'true']], 0) / (
                coalesce(counts[[class, 'true']], 0) + coalesce(counts[[class, 'false']], 0)
            )
        ))
    )[1];
