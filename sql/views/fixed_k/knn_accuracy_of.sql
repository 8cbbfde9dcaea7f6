-- knn_accuracy_of(points): how well the k nearest neighbours predict the label, and the confounder.
--
-- grain   one row per benchmark, encoder and k
-- reads   neighbour_files
-- input   points: name of a relation with columns benchmark, encoder and k
-- output  bio_bacc, conf_bacc: balanced accuracy, the mean of the recalls of the classes, of the label
--         and of the confounder that most of the k nearest have (see label_hit in neighbours). With
--         subsets, the mean over subsets
-- NULL    none. A sample without any neighbour in other groups is left out, one with fewer than k votes
--         with those it has. A k that is not smaller than the scope (the benchmark, or its subset;
--         also where neighbours must match) is left out for that scope, so a row may be missing
-- notes   Means are over sorted lists, so that they have the same last bit in every run.
-- source  Grisi et al. 2026, section 2.2; croma 1.0.1, which takes the order of rows for ties
CREATE OR REPLACE MACRO knn_accuracy_of(points) AS TABLE
WITH
    grid AS (
        SELECT benchmark, encoder, list(DISTINCT k) AS ks
        FROM query_table(points)
        GROUP BY ALL
    ),
    sizes AS (
        SELECT benchmark, encoder, subset, count(*) AS n
        FROM main.neighbour_files
        WHERE usable
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
        FROM main.neighbour_files AS found
        JOIN grid USING (benchmark, encoder)
        JOIN sizes
            ON sizes.benchmark = found.benchmark
            AND sizes.encoder = found.encoder
            AND sizes.subset IS NOT DISTINCT FROM found.subset
        WHERE len(distance) > 0
    ),
    recalls AS (
        SELECT
            benchmark,
            encoder,
            subset,
            k,
            label,
            confounder,
            grouping(confounder) = 1 AS of_label,
            avg(label_hit[least(k, len(label_hit))]::INTEGER) AS bio,
            avg(confounder_hit[least(k, len(confounder_hit))]::INTEGER) AS conf
        FROM asked
        GROUP BY GROUPING SETS (
            (benchmark, encoder, subset, k, label), (benchmark, encoder, subset, k, confounder)
        )
    ),
    of_scopes AS (
        SELECT
            benchmark,
            encoder,
            subset,
            k,
            list_avg(list(bio ORDER BY label) FILTER (of_label)) AS bio,
            list_avg(list(conf ORDER BY confounder) FILTER (NOT of_label)) AS conf
        FROM recalls
        GROUP BY benchmark, encoder, subset, k
    )
SELECT
    benchmark,
    encoder,
    k,
    list_avg(list(bio ORDER BY subset)) AS bio_bacc,
    list_avg(list(conf ORDER BY subset)) AS conf_bacc
FROM of_scopes
GROUP BY benchmark, encoder, k;
