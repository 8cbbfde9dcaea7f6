-- unit_attributes_but(names): attributes of units, to stand beside what a view says of them.
--
-- grain   one row per benchmark and unit
-- reads   unit_attributes
-- input   names: list of the view's own columns, in lower case; an attribute that goes by one of them
--         is left out
-- NULL    as in unit_attributes
-- notes   An aggregate that takes no attribute does not read the samples: DuckDB leaves the join out.
CREATE OR REPLACE MACRO unit_attributes_but(names) AS TABLE
SELECT
    benchmark,
    unit,
    COLUMNS(lambda name: name NOT IN ('benchmark', 'unit') AND NOT list_contains(names, lower(name)))
FROM main.unit_attributes;
