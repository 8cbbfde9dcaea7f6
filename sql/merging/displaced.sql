-- displaced: slides of which tiles arrive that lie elsewhere, or are of another size, than those there.
--
-- grain   one row
-- reads   here: tiles that arrive; there: tiles of the dataset, without those that are replaced
-- output  n: how many slides; some: the first of them
-- NULL    some, where there are none. Of a place that is not known on one side, nothing is said.
SELECT count(*) AS n, min(slide_id, 4) AS some
FROM (
    SELECT DISTINCT here.slide_id
    FROM here
    JOIN there USING (sample_id)
    WHERE
        NOT croma_sql_replaced
        AND (
            here.x <> there.x
            OR here.y <> there.y
            OR here.coord_unit <> there.coord_unit
            OR here.tile_size <> there.tile_size
        )
);
