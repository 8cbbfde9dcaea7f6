-- attributes_but(names): attributes of the samples, to stand beside what a view says of them.
--
-- grain   one row per sample
-- reads   samples
-- input   names: list of the view's own columns, in lower case
-- output  every attribute; one that goes by the name of a column of the view is called sample_<name>, so
--         that label is the benchmark's label, and sample_label the attribute
-- NULL    an attribute that the sample's dataset does not have
CREATE OR REPLACE MACRO attributes_but(names) AS TABLE
SELECT * EXCLUDE ("sample_ always")
FROM (
    SELECT
        sample_id,
        COLUMNS(
            lambda name: lower(name) NOT IN ('sample_id', ' always') AND NOT list_contains(names, lower(name))
        ),
        COLUMNS(lambda name: name = ' always' OR list_contains(names, lower(name))) AS "sample_\0"
    FROM (SELECT *, 0 AS " always" FROM main.samples)
);
