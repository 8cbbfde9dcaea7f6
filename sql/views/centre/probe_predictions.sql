-- probe_predictions: what probes that have learnt from other groups take every sample for.
--
-- grain   one row per benchmark, encoder, subset, target, probe and sample
-- reads   probe_prediction_files, attributes_but
-- output  target: 'label' or 'confounder'; probe: 'knn' or 'linear'; fold: in which the sample was
--         predicted, from 0; truth, predicted: of the target
-- NULL    fold, predicted where a class of the target has fewer groups than there are folds, is the
--         only one, or all its groups came into one fold; subset where the benchmark has none; attributes of a sample that has since been
--         removed
-- notes   Every attribute of the sample stands beside, except one that goes by the name of a column
--         here. Accuracy within any of them:
--             SELECT encoder, stain, croma_balanced_accuracy(truth, predicted) AS bacc
--             FROM probe_predictions
--             WHERE target = 'confounder' AND probe = 'linear'
--             GROUP BY ALL
CREATE OR REPLACE VIEW probe_predictions AS
SELECT
    found.benchmark,
    found.encoder,
    found.subset,
    found.sample_id,
    found.group_id,
    found.target,
    found.probe,
    found.fold,
    found.truth,
    found.predicted,
    attributes.* EXCLUDE (sample_id)
FROM main.probe_prediction_files AS found
LEFT JOIN attributes_but([
    'benchmark', 'encoder', 'subset', 'group_id', 'target', 'probe', 'fold', 'truth', 'predicted'
]) AS attributes ON attributes.sample_id = found.sample_id;
