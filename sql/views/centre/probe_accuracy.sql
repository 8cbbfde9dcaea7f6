-- probe_accuracy: how well probes that have learnt from other groups tell label and confounder.
--
-- grain   one row per benchmark, encoder, target and probe
-- reads   probe_prediction_files
-- output  n: predictions; n_classes: of the target, in a subset at most; chance: balanced accuracy of
--         guessing, 1 / n_classes; accuracy: fraction predicted right; balanced_accuracy: mean of the
--         recalls of the classes. With subsets, chance and accuracies are means over subsets
-- NULL    all but n where the target could not be probed, see probe_predictions. A subset in which it
--         could not is left out of the means
CREATE OR REPLACE VIEW probe_accuracy AS
WITH of_subsets AS (
    SELECT
        benchmark,
        encoder,
        subset,
        target,
        probe,
        count(predicted) AS n,
        count(DISTINCT truth) FILTER (predicted IS NOT NULL) AS classes,
        avg((truth = predicted)::INTEGER) AS right_share,
        croma_balanced_accuracy(truth, predicted) AS recall
    FROM main.probe_prediction_files
    GROUP BY benchmark, encoder, subset, target, probe
)
SELECT
    benchmark,
    encoder,
    target,
    probe,
    sum(n)::BIGINT AS n,
    nullif(max(classes), 0) AS n_classes,
    list_avg(list(1 / nullif(classes, 0) ORDER BY subset)) AS chance,
    list_avg(list(right_share ORDER BY subset)) AS accuracy,
    list_avg(list(recall ORDER BY subset)) AS balanced_accuracy
FROM of_subsets
GROUP BY benchmark, encoder, target, probe;
