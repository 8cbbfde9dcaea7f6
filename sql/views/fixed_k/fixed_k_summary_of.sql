-- fixed_k_summary_of(points): RI, MaRI, k-NN accuracies and support at given k.
--
-- grain   one row per benchmark, encoder and k
-- reads   neighbourhoods_of, knn_accuracy_of
-- input   points: name of a relation with columns benchmark, encoder and k
-- output  n: samples with a vector (with subsets, occurrences); n_unusable: those without; bio_bacc,
--         conf_bacc; ri, mari: pooled over all of them; support: fraction with an SO or OS neighbour;
--         ss_dominated, oo_dominated, mixed: fractions of those without, by cause; tau and tau_warning
-- NULL    bio_bacc and conf_bacc where k is not smaller than the scope; ri and mari where nobody has
--         an SO or OS neighbour
-- source  Grisi et al. 2026, section 2
CREATE OR REPLACE MACRO fixed_k_summary_of(points) AS TABLE
WITH pooled AS (
    SELECT
        benchmark,
        encoder,
        k::INTEGER AS k,
        count(n_so) AS n,
        count(*) - count(n_so) AS n_unusable,
        ri(n_so, n_os) AS ri,
        mari(log_so, log_os) AS mari,
        support(n_so, n_os) AS support,
        count(*) FILTER (unsupported_reason = 'ss_dominated') / nullif(count(n_so), 0) AS ss_dominated,
        count(*) FILTER (unsupported_reason = 'oo_dominated') / nullif(count(n_so), 0) AS oo_dominated,
        count(*) FILTER (unsupported_reason = 'mixed') / nullif(count(n_so), 0) AS mixed,
        any_value(tau) AS tau,
        any_value(tau_warning) AS tau_warning
    FROM neighbourhoods_of(points)
    GROUP BY ALL
)
SELECT
    benchmark,
    encoder,
    k,
    n,
    n_unusable,
    bio_bacc,
    conf_bacc,
    ri,
    mari,
    support,
    ss_dominated,
    oo_dominated,
    mixed,
    tau,
    tau_warning
FROM pooled
LEFT JOIN knn_accuracy_of(points) USING (benchmark, encoder, k);
