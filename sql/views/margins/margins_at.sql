-- margins_at(m): the margin of every scored sample, over its m nearest neighbours per type.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   typed_neighbour_files, attributes_but
-- input   m: 1 to the depth scored (20 by default); more is an error
-- output  matched: what neighbours had in common with the sample, as JSON: {"centre": "A"}
-- NULL    margin with an undefined_reason, see croma_undefined_reason; subset, matched where the
--         benchmark has none; attributes of a sample that has since been removed
-- notes   Every attribute of the sample stands beside its margin, except one that goes by the name of
--         a column here: where the benchmark says label, it is the benchmark's label that is meant.
CREATE OR REPLACE MACRO margins_at(m) AS TABLE
WITH scored AS (
    SELECT
        benchmark,
        encoder,
        subset,
        sample_id,
        label,
        confounder,
        group_id,
        matched,
        usable,
        croma_typed_mean(so_distance, checked_m) AS d_so,
        croma_typed_mean(os_distance, checked_m) AS d_os
    FROM (
        SELECT *, croma_checked_depth('m', m, depth, benchmark, encoder) AS checked_m
        FROM main.typed_neighbour_files
    )
)
SELECT
    scored.benchmark,
    scored.encoder,
    scored.subset,
    scored.sample_id,
    scored.label,
    scored.confounder,
    scored.group_id,
    scored.matched,
    scored.d_so,
    scored.d_os,
    croma_margin(scored.d_so, scored.d_os) AS margin,
    croma_undefined_reason(scored.usable, scored.d_so, scored.d_os) AS undefined_reason,
    attributes.* EXCLUDE (sample_id)
FROM scored
LEFT JOIN attributes_but([
    'benchmark', 'encoder', 'subset', 'label', 'confounder', 'group_id', 'matched', 'd_so', 'd_os',
    'margin', 'undefined_reason'
]) AS attributes ON attributes.sample_id = scored.sample_id;
