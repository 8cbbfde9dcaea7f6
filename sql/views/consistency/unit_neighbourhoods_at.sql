-- unit_neighbourhoods_at(k): how much of the neighbourhood of every unit is the same under all
-- acquisitions.
--
-- grain   one row per benchmark, encoder and unit
-- reads   unit_neighbourhood_files, unit_attributes_but
-- input   k: 1 to the depth compared (croma-sql consistency --depth); more is an error
-- output  n_shared: units that are among its k nearest under every acquisition; iok: n_shared / k, so
--         that sum(n_shared) / sum(k) of any group is its Intersection-over-K. Every attribute of the
--         unit stands beside, but for those that go by a name of these columns
-- NULL    attributes, as in unit_attributes
-- source  Scanner-induced domain shifts undermine the robustness of pathology foundation models,
--         equation 7
CREATE OR REPLACE MACRO unit_neighbourhoods_at(k) AS TABLE
WITH checked AS (
    SELECT
        benchmark,
        encoder,
        unit,
        shared_at,
        CASE
            WHEN TRY_CAST(k::VARCHAR AS DOUBLE) BETWEEN 1 AND depth
                AND TRY_CAST(k::VARCHAR AS DOUBLE) = floor(TRY_CAST(k::VARCHAR AS DOUBLE))
            THEN TRY_CAST(k::VARCHAR AS DOUBLE)::INTEGER
            ELSE error('k is ' || coalesce(k::VARCHAR, 'NULL') || ', but neighbourhoods of benchmark "'
                || benchmark || '" were compared to a depth of ' || depth || ' for encoder "' || encoder
                || '"; k can be a whole number up to ' || depth || ', which is at most the number of '
                || 'other units, or as set by croma-sql consistency --depth')
        END AS k
    FROM main.unit_neighbourhood_files
)
SELECT
    checked.benchmark,
    checked.encoder,
    checked.unit,
    checked.k,
    croma_n_shared(checked.shared_at, checked.k) AS n_shared,
    croma_n_shared(checked.shared_at, checked.k) / checked.k AS iok,
    attributes.* EXCLUDE (benchmark, unit)
FROM checked
LEFT JOIN unit_attributes_but([
    'encoder', 'k', 'n_shared', 'iok'
]) AS attributes ON attributes.benchmark = checked.benchmark AND attributes.unit = checked.unit;
