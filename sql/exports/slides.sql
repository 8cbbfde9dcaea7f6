-- slides: whether it is known where the tiles of each slide lie.
--
-- grain   one row per slide, in the order of slide_id
-- reads   tiles
-- output  n: tiles; n_nowhere: without coordinates; n_unitless: whose unit is neither 'px' nor 'um';
--         n_sizeless: without a size; n_unscaled: in 'um', on a slide whose pixels are of unknown size;
--         n_unbounded: without an offset; n_torn: all tiles of a slide that has more than one
-- NULL    slide_id, of tiles that have none
SELECT
    slide_id,
    count(*) AS n,
    count(*) FILTER (WHERE (isfinite(x) AND isfinite(y)) IS NOT TRUE) AS n_nowhere,
    count(*) FILTER (WHERE coord_unit IS NULL OR coord_unit NOT IN ('px', 'um')) AS n_unitless,
    count(*) FILTER (WHERE (tile_size > 0 AND isfinite(tile_size)) IS NOT TRUE) AS n_sizeless,
    count(*) FILTER (
        WHERE coord_unit = 'um' AND (mpp > 0 AND isfinite(mpp)) IS NOT TRUE
    ) AS n_unscaled,
    count(*) FILTER (WHERE (isfinite(offset_x) AND isfinite(offset_y)) IS NOT TRUE) AS n_unbounded,
    CASE WHEN min(offset_x) < max(offset_x) OR min(offset_y) < max(offset_y) THEN count(*) ELSE 0 END AS n_torn
FROM tiles
GROUP BY slide_id
ORDER BY slide_id;
