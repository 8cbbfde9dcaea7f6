-- groups: the groups that samples are in, and what is known of them.
--
-- grain   one row per group, in the order of its attributes
-- reads   samples
-- input   $names: list of the attributes that the samples of a group agree in, as they are spelt;
--         $others: list of further attributes, not empty
-- output  the attributes in $names; n_pooled: samples of the group; then the least value of each in
--         $others, then the greatest: where these are one, so is the value of all samples of the group
-- NULL    a value that no sample of the group has; those without one are passed over, as those of a
--         dataset without that column
SELECT
    COLUMNS(lambda name: list_contains($names, name)),
    count(*) AS n_pooled,
    min(COLUMNS(lambda name: list_contains($others, name))),
    max(COLUMNS(lambda name: list_contains($others, name)))
FROM main.samples
GROUP BY ALL
ORDER BY COLUMNS(lambda name: list_contains($names, name));
