-- operating_points_of(accuracies): the k at which fixed-k metrics are read.
--
-- grain   one row per benchmark and encoder
-- reads   encoders
-- input   accuracies: name of a relation with columns benchmark, encoder, k and bio_bacc, such as
--         knn_accuracy
-- output  k_star: the smallest k of the highest bio_bacc (slide-level panels), where accuracies that
--         agree to 12 decimals are equal, or rounding would choose; median_k: the lower
--         median of the k_star of the benchmark's encoders, controls left out (PathoROB's protocol)
-- NULL    median_k where every encoder is a control
-- source  Koemen et al. 2026, PathoROB; Grisi et al. 2026, section 2.2 and A.12
CREATE OR REPLACE MACRO operating_points_of(accuracies) AS TABLE
WITH best AS (
    SELECT benchmark, encoder, arg_min(k, (-round(bio_bacc, 12), k)) AS k_star
    FROM query_table(accuracies)
    GROUP BY benchmark, encoder
)
SELECT
    best.benchmark,
    best.encoder,
    best.k_star,
    quantile_disc(CASE WHEN NOT coalesce(encoders.is_control, false) THEN best.k_star END, 0.5) OVER (
        PARTITION BY best.benchmark
    ) AS median_k
FROM best
LEFT JOIN main.encoders ON encoders.encoder = best.encoder;
