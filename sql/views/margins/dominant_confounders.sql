-- dominant_confounders(benchmarks, m := 5): which of several confounders each sample is most prone to.
--
-- grain   one row per encoder and sample that is in any of the benchmarks
-- reads   margins_at(m), attributes_but
-- input   benchmarks: list of names, one benchmark per confounder of the same cohort; m as in
--         margins_at
-- output  dominant: the benchmark with the lowest margin, of equal ones the first in the list;
--         margin: that margin; margins: map of all, in the order of the list. A sample in several
--         subsets of a benchmark has the median of its margins there.
-- NULL    dominant and margin, unless every one of the benchmarks has a margin of the sample; in
--         margins, what is undefined; label and group_id where the benchmarks differ in it;
--         attributes of a sample that has since been removed
-- notes   Every attribute of the sample stands beside, except one that goes by the name of a column
--         here. Which nuisance dominates, and for whom:
--             SELECT encoder, stain, dominant, count(*) AS n, median(margin) AS croma
--             FROM dominant_confounders(['scanner', 'centre'])
--             GROUP BY ALL
CREATE OR REPLACE MACRO dominant_confounders(benchmarks, m := 5) AS TABLE
WITH
    asked AS (
        SELECT unnest(names) AS benchmark, generate_subscripts(names, 1) AS place
        FROM (
            SELECT
                CASE
                    WHEN len(list_distinct(benchmarks)) = len(benchmarks) THEN benchmarks
                    ELSE error('dominant_confounders: benchmarks is '
                        || coalesce(benchmarks::VARCHAR, 'NULL') || '; it is a list of names, each once')
                END AS names
        )
    ),
    unknown AS (
        SELECT benchmark
        FROM asked
        WHERE benchmark NOT IN (SELECT DISTINCT benchmark FROM main.typed_neighbour_files)
    ),
    scored AS (
        SELECT encoder, sample_id, benchmark, label, group_id, margin
        FROM margins_at(m)
        WHERE list_contains(benchmarks, benchmark)
    ),
    per_benchmark AS (
        SELECT
            encoder,
            sample_id,
            benchmark,
            place,
            min(label) AS label,
            max(label) AS other_label,
            min(group_id) AS group_id,
            max(group_id) AS other_group_id,
            median(margin) AS margin
        FROM scored
        JOIN asked USING (benchmark)
        GROUP BY encoder, sample_id, benchmark, place
    ),
    per_sample AS (
        SELECT
            encoder,
            sample_id,
            CASE WHEN min(label) = max(other_label) THEN min(label) END AS label,
            CASE WHEN min(group_id) = max(other_group_id) THEN min(group_id) END AS group_id,
            count(margin) = len(benchmarks) AS is_whole,
            first(benchmark ORDER BY margin ASC NULLS LAST, place ASC) AS lowest,
            min(margin) AS margin,
            map_from_entries(list((benchmark, margin) ORDER BY place ASC)) AS margins
        FROM per_benchmark
        GROUP BY encoder, sample_id
    )
SELECT
    per_sample.encoder,
    per_sample.sample_id,
    per_sample.label,
    per_sample.group_id,
    CASE WHEN per_sample.is_whole THEN per_sample.lowest END AS dominant,
    CASE WHEN per_sample.is_whole THEN per_sample.margin END AS margin,
    per_sample.margins,
    attributes.* EXCLUDE (sample_id)
FROM per_sample
LEFT JOIN attributes_but([
    'encoder', 'label', 'group_id', 'dominant', 'margin', 'margins'
]) AS attributes ON attributes.sample_id = per_sample.sample_id
WHERE CASE
    WHEN (SELECT count(*) FROM unknown) > 0
    THEN error('dominant_confounders: nothing has been scored of benchmark(s) '
        || (SELECT array_to_string(list('"' || benchmark || '"' ORDER BY benchmark ASC), ', ') FROM unknown)
        || '; the view margins has them by name')
    ELSE true
END;
