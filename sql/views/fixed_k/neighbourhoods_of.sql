-- neighbourhoods_of(points, tau := NULL): what is among the k nearest neighbours of every sample.
--
-- grain   one row per benchmark, encoder, k, subset and sample
-- reads   neighbour_files, attributes_but
-- input   points: name of a relation with columns benchmark, encoder and k; what is not in it is
--         left out
--         tau: temperature of MaRI's weights exp(-distance / tau). NULL: for each benchmark, encoder
--         and k the median distance of all SO and OS neighbours within the k nearest, or 0.2 where
--         there is none, or where it is 0: then MaRI does not depend on it
-- output  n_ss, n_so, n_os, n_oo: neighbours by type, of which there are fewer than k where groups leave
--         fewer candidates; ri; mari; log_so, log_os: logarithms of the summed weights, so that any
--         group has ri(n_so, n_os), mari(log_so, log_os) and support(n_so, n_os); tau, and
--         tau_warning where it was not the median, or a pinned one is 4 times away from it
-- NULL    ri and mari with an unsupported_reason, see croma_unsupported_reason; counts too where the
--         sample has no vector; subset where the benchmark has none
-- source  Grisi et al. 2026, section 2 (RI, MaRI); croma 1.0.1 (fallback and range of tau)
-- notes   Every attribute of the sample stands beside, as in margins_at.
CREATE OR REPLACE MACRO neighbourhoods_of(points, tau := NULL) AS TABLE
WITH
    typed AS NOT MATERIALIZED (
        SELECT
            benchmark,
            encoder,
            subset,
            sample_id,
            label,
            confounder,
            group_id,
            usable,
            type[:k] AS types,
            list_filter(distance[:k], lambda d, nth: type[nth] = 'SO') AS so_distance,
            list_filter(distance[:k], lambda d, nth: type[nth] = 'OS') AS os_distance,
            k
        FROM (
            SELECT
                neighbour_files.*,
                croma_checked_depth('k', asked.k, depth, benchmark, encoder) AS k
            FROM main.neighbour_files
            JOIN (SELECT DISTINCT benchmark, encoder, k FROM query_table(points)) AS asked
                USING (benchmark, encoder)
        )
    ),
    scales AS (
        SELECT benchmark, encoder, k, median(distance) AS scale
        FROM (
            SELECT benchmark, encoder, k, unnest(list_concat(so_distance, os_distance)) AS distance
            FROM typed
        )
        GROUP BY benchmark, encoder, k
    ),
    weighted AS (
        SELECT
            typed.*,
            CASE WHEN usable THEN len(list_filter(types, lambda t: t = 'SS')) END AS n_ss,
            CASE WHEN usable THEN len(so_distance) END AS n_so,
            CASE WHEN usable THEN len(os_distance) END AS n_os,
            CASE WHEN usable THEN len(list_filter(types, lambda t: t = 'OO')) END AS n_oo,
            CASE
                WHEN tau IS NULL THEN coalesce(nullif(scale, 0), 0.2)
                WHEN tau::DOUBLE > 0 AND isfinite(tau::DOUBLE) THEN tau::DOUBLE
                ELSE error('tau is ' || tau || '; it is a distance above 0, or left out')
            END AS temperature,
            CASE
                WHEN scale IS NULL THEN 'no SO or OS neighbour within k, so tau changes nothing'
                WHEN tau IS NULL AND scale = 0
                    THEN 'the median distance of SO and OS neighbours is 0, so MaRI is close to RI'
                WHEN tau::DOUBLE < scale / 4 THEN 'tau is less than a quarter of ' || scale
                    || ', the median distance of SO and OS neighbours: the nearest decides alone'
                WHEN tau::DOUBLE > scale * 4 THEN 'tau is more than 4 times ' || scale
                    || ', the median distance of SO and OS neighbours: MaRI is close to RI'
            END AS tau_warning
        FROM typed
        LEFT JOIN scales USING (benchmark, encoder, k)
    ),
    scored AS (
        SELECT
            *,
            croma_log_weight(so_distance, temperature) AS log_so,
            croma_log_weight(os_distance, temperature) AS log_os
        FROM weighted
    )
SELECT
    scored.benchmark,
    scored.encoder,
    scored.subset,
    scored.sample_id,
    scored.label,
    scored.confounder,
    scored.group_id,
    scored.k,
    scored.n_ss,
    scored.n_so,
    scored.n_os,
    scored.n_oo,
    scored.n_so / nullif(scored.n_so + scored.n_os, 0) AS ri,
    CASE
        WHEN scored.log_os IS NULL THEN exp(scored.log_so - scored.log_so)
        WHEN scored.log_so IS NULL THEN 0.0
        ELSE 1 / (1 + exp(scored.log_os - scored.log_so))
    END AS mari,
    croma_unsupported_reason(
        scored.usable, scored.n_ss, scored.n_so, scored.n_os, scored.n_oo
    ) AS unsupported_reason,
    scored.log_so,
    scored.log_os,
    scored.temperature AS tau,
    scored.tau_warning,
    attributes.* EXCLUDE (sample_id)
FROM scored
LEFT JOIN attributes_but([
    'benchmark', 'encoder', 'subset', 'label', 'confounder', 'group_id', 'k', 'n_ss', 'n_so', 'n_os',
    'n_oo', 'ri', 'mari', 'unsupported_reason', 'log_so', 'log_os', 'tau', 'tau_warning'
]) AS attributes ON attributes.sample_id = scored.sample_id;
