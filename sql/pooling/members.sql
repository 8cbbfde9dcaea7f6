-- members: which group every sample is in.
--
-- grain   one row per sample, in the order of sample_id
-- reads   samples
-- input   $names: list of the attributes that the samples of a group agree in, as they are spelt
-- output  place: of the group among those of groups.sql, from 0
-- NULL    none; where an attribute is NULL, that is a group of its own
WITH
    keyed AS (
        SELECT sample_id, row(*COLUMNS(lambda name: list_contains($names, name))) AS key
        FROM main.samples
    ),
    keys AS (
        SELECT key, row_number() OVER (ORDER BY key) - 1 AS place
        FROM (SELECT DISTINCT key FROM keyed)
    )
SELECT keyed.sample_id, keys.place
FROM keyed
JOIN keys ON keyed.key IS NOT DISTINCT FROM keys.key
ORDER BY keyed.sample_id;
