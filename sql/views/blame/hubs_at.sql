-- hubs_at(m): how often every sample is a neighbour of others: whom do the distractors go back to?
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   typed_neighbour_files, attributes_but
-- input   m: neighbours per type, 1 to the depth scored
-- output  n_so, n_os: in how many samples' lists of the m nearest SO and OS it stands; so_lift, os_lift:
--         the same divided by the mean over the samples of its subset: 10 is ten times as often as most.
--         Every attribute of the sample stands beside, as in margins_at
-- NULL    a lift in a subset without any edge of that type; counts where the sample has no vector
CREATE OR REPLACE MACRO hubs_at(m) AS TABLE
WITH
    there AS (
        SELECT
            benchmark,
            encoder,
            subset,
            sample_id,
            label,
            confounder,
            group_id,
            usable,
            so_id[:checked_m] AS so_id,
            os_id[:checked_m] AS os_id
        FROM (
            SELECT *, croma_checked_depth('m', m, depth, benchmark, encoder) AS checked_m
            FROM main.typed_neighbour_files
        )
    ),
    listed AS (
        SELECT
            benchmark,
            encoder,
            coalesce(subset, '') AS scope,
            neighbour_id,
            count(*) FILTER (is_so) AS n_so,
            count(*) FILTER (NOT is_so) AS n_os
        FROM (
            SELECT benchmark, encoder, subset, true AS is_so, unnest(so_id) AS neighbour_id
            FROM there
            UNION ALL
            SELECT benchmark, encoder, subset, false, unnest(os_id)
            FROM there
        )
        GROUP BY ALL
    ),
    counted AS (
        SELECT
            there.* EXCLUDE (so_id, os_id),
            CASE WHEN usable THEN coalesce(listed.n_so, 0) END AS n_so,
            CASE WHEN usable THEN coalesce(listed.n_os, 0) END AS n_os
        FROM there
        LEFT JOIN listed
            ON listed.benchmark = there.benchmark
            AND listed.encoder = there.encoder
            AND listed.scope = coalesce(there.subset, '')
            AND listed.neighbour_id = there.sample_id
    ),
    compared AS (
        SELECT
            *,
            n_so / nullif(avg(n_so) OVER of_scope, 0) AS so_lift,
            n_os / nullif(avg(n_os) OVER of_scope, 0) AS os_lift
        FROM counted
        WINDOW of_scope AS (PARTITION BY benchmark, encoder, subset)
    )
SELECT
    compared.benchmark,
    compared.encoder,
    compared.subset,
    compared.sample_id,
    compared.label,
    compared.confounder,
    compared.group_id,
    compared.n_so,
    compared.n_os,
    compared.so_lift,
    compared.os_lift,
    attributes.* EXCLUDE (sample_id)
FROM compared
LEFT JOIN attributes_but([
    'benchmark', 'encoder', 'subset', 'label', 'confounder', 'group_id', 'n_so', 'n_os', 'so_lift', 'os_lift'
]) AS attributes ON attributes.sample_id = compared.sample_id;
