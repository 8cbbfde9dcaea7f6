-- unit_attributes_but(names): attributes of units, to stand beside what a view says of them.
--
-- grain   one row per benchmark and unit
-- reads   unit_attributes
-- input   names: list of the view's own columns, in lower case
-- output  every attribute; one that goes by the name of a column of the view is called sample_<name>
-- NULL    as in unit_attributes
-- notes   An aggregate that takes no attribute does not read the samples: DuckDB leaves the join out.
CREATE OR REPLACE MACRO unit_attributes_but(names) AS TABLE
SELECT * EXCLUDE ("sample_ always")
FROM (
    SELECT
        benchmark,
        unit,
        COLUMNS(
            lambda name: name NOT IN ('benchmark', 'unit', ' always') AND NOT list_contains(names, lower(name))
        ),
        COLUMNS(lambda name: name = ' always' OR list_contains(names, lower(name))) AS "sample_\0"
    FROM (SELECT *, 0 AS " always" FROM main.unit_attributes)
);
