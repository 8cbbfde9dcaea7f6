-- tiles: the tiles of slides as rectangles, in pixels of level 0 counted from the offset of the slide.
--
-- grain   one row per tile, in the order of slide and sample
-- reads   tiles
-- input   $slides: list of slide_id
-- output  "left", top, "right", bottom: coordinates in 'um' are divided by mpp, micrometres per pixel
-- NULL    margin, with an undefined_reason; d_so and d_os as in margins_at
SELECT
    slide_id,
    sample_id,
    x / pixel - offset_x AS "left",
    y / pixel - offset_y AS top,
    (x + tile_size) / pixel - offset_x AS "right",
    (y + tile_size) / pixel - offset_y AS bottom,
    margin,
    d_so,
    d_os,
    undefined_reason
FROM (
    SELECT *, CASE coord_unit WHEN 'um' THEN mpp ELSE 1 END AS pixel
    FROM tiles
)
WHERE list_contains($slides, slide_id)
ORDER BY slide_id, sample_id;
