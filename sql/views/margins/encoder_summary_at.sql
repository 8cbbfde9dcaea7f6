-- encoder_summary_at(m): the published summaries of every scored benchmark and encoder, at any m.
--
-- grain   one row per benchmark and encoder
-- reads   margins_at
-- input   m: neighbours per type, 1 to the depth scored
-- columns n: margins asked for (samples, or samples times the subsets they are in); n_undefined: how
--         many of them are NULL and left out of all that follows; croma: the median margin, for a
--         benchmark with subsets the median of the subsets' medians (each contrast weighs the same);
--         pooled_median: the median over all margins, the same thing where there are no subsets;
--         f0; ltm05, ltm10, ltm20: lower-tail means
-- NULL    a statistic without any defined margin
CREATE OR REPLACE MACRO encoder_summary_at(m) AS TABLE
WITH
    scored AS MATERIALIZED (
        SELECT benchmark, encoder, subset, margin
        FROM margins_at(m)
    ),
    subsets AS (
        SELECT benchmark, encoder, subset, median(margin) AS croma
        FROM scored
        GROUP BY benchmark, encoder, subset
    ),
    headline AS (
        SELECT benchmark, encoder, median(croma) AS croma
        FROM subsets
        GROUP BY benchmark, encoder
    ),
    pooled AS (
        SELECT
            benchmark,
            encoder,
            count(*) AS n,
            count(*) - count(margin) AS n_undefined,
            median(margin) AS pooled_median,
            f0(margin) AS f0,
            ltm(margin, 0.05) AS ltm05,
            ltm(margin, 0.10) AS ltm10,
            ltm(margin, 0.20) AS ltm20
        FROM scored
        GROUP BY benchmark, encoder
    )
SELECT benchmark, encoder, n, n_undefined, croma, pooled_median, f0, ltm05, ltm10, ltm20
FROM pooled
JOIN headline USING (benchmark, encoder);
