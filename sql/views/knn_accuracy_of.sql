-- knn_accuracy_of(points): how well the k nearest neighbours predict the label, and the confounder.
--
-- grain   one row per benchmark, encoder and k
-- reads   neighbour_files
-- input   points: name of a relation with columns benchmark, encoder and k, each row once
-- output  bio_bacc, conf_bacc: balanced accuracy, the mean of the recalls of the classes, of the label
--         and of the confounder that most of the k nearest have (see label_hit in neighbours). With
--         subsets, the mean over subsets
-- NULL    none. A sample without any neighbour in other groups is left out, one with fewer than k votes
--         with those it has. A k that is not smaller than the scope is left out for that scope, so a
--         row may be missing
-- notes   Means are over sorted lists, so that they have the same last bit in every run.
-- source  Grisi et al. 2026, section 2.2; croma 1.0.1, which takes the order of rows for ties
CREATE OR REPLACE MACRO knn_accuracy_of(points) AS TABLE
WITH
    sizes AS (
        SELECT benchmark, encoder, subset, count(*) AS n
        FROM neighbour_files
        WHERE usable
        GROUP BY ALL
    ),
    grid AS (
        SELECT benchmark, encoder, list(k) AS ks
        FROM query_table(points)
        GROUP BY ALL
    ),
    asked AS (
        SELECT
            found.benchmark,
            found.encoder,
            found.subset,
            found.label,
            found.confounder,
            found.label_hit,
            found.confounder_hit,
            unnest(list_filter(
                list_transform(
                    ks, lambda k: croma_checked_depth('k', k, depth, found.benchmark, found.encoder)
                ),
                lambda k: k < n
            ))::INTEGER AS k
        FROM neighbour_files AS found
        JOIN grid USING (benchmark, encoder)
        JOIN sizes
            ON sizes.benchmark = found.benchmark
            AND sizes.encoder = found.encoder
            AND sizes.subset IS NOT DISTINCT FROM found.subset
        WHERE len(distance) > 0
    ),
    hits AS (
        SELECT
            benchmark,
            encoder,
            subset,
            k,
            unnest(['label', 'confounder']) AS target,
            unnest([label, confounder]) AS class,
            unnest([
                label_hit[least(k, len(label_hit))], confounder_hit[least(k, len(confounder_hit))]
            ]) AS hit
        FROM asked
    ),
    of_classes AS (
        SELECT benchmark, encoder, subset, k, target, class, avg(hit::INTEGER) AS recall
        FROM hits
        GROUP BY ALL
    ),
    of_scopes AS (
        SELECT
            benchmark, encoder, subset, k, target, list_avg(list(recall ORDER BY class)) AS accuracy
        FROM of_classes
        GROUP BY ALL
    )
SELECT
    benchmark,
    encoder,
    k,
    list_avg(list(accuracy ORDER BY subset) FILTER (target = 'label')) AS bio_bacc,
    list_avg(list(accuracy ORDER BY subset) FILTER (target = 'confounder')) AS conf_bacc
FROM of_scopes
GROUP BY benchmark, encoder, k;
