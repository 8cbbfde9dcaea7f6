-- margins_at(m): the margin of every scored sample, over its m nearest neighbours per type.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   typed_neighbour_files, samples
-- input   m: 1 to the depth scored (20 by default); more is an error
-- output  matched: what neighbours had in common with the sample, as JSON: {"centre": "A"}
-- NULL    margin with an undefined_reason, see croma_undefined_reason; subset, matched where the
--         benchmark has none; attributes of a sample that has since been removed
-- notes   Every attribute of the sample stands beside its margin, except one that goes by the name of
--         a column here: where the benchmark says label, it is the benchmark's label that is meant.
CREATE OR REPLACE MACRO margins_at(m) AS TABLE
WITH
    scored AS (
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
            CASE
                WHEN m BETWEEN 1 AND depth AND m = floor(m) THEN croma_typed_mean(so_distance, m)
                ELSE error('margins_at: m is ' || coalesce(m::VARCHAR, 'NULL') || ', but benchmark "'
                    || benchmark || '" was scored to a depth of ' || depth || ' for encoder "' || encoder
                    || '"; m can be a whole number up to ' || depth || ', or score again with a larger m')
            END AS d_so,
            croma_typed_mean(os_distance, m) AS d_os
        FROM typed_neighbour_files
    ),
    attributes AS (
        SELECT
            sample_id,
            COLUMNS(lambda name: lower(name) NOT IN (
                'benchmark', 'encoder', 'subset', 'sample_id', 'label', 'confounder', 'group_id',
                'matched', 'd_so', 'd_os', 'margin', 'undefined_reason'
            ))
        FROM samples
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
LEFT JOIN attributes ON attributes.sample_id = scored.sample_id;
