-- attributes_but(names): attributes of the samples, to stand beside what a view says of them.
--
-- grain   one row per sample
-- reads   samples
-- input   names: list of the view's own columns, in lower case; an attribute that goes by one of them
--         is left out: where the benchmark says label, it is the benchmark's label that is meant
-- NULL    an attribute that the sample's dataset does not have
CREATE OR REPLACE MACRO attributes_but(names) AS TABLE
SELECT
    sample_id,
    COLUMNS(lambda name: lower(name) <> 'sample_id' AND NOT list_contains(names, lower(name)))
FROM main.samples;
