-- The same place under another scanner: how far does it move, and is it found again?
SELECT
    encoder,
    n_units,
    d_cos,
    relative_d_cos,
    mr_1nn,
    mantel_r,
    is_collapse
FROM collapse_check
WHERE benchmark = 'places_across_scanners'
ORDER BY mr_1nn DESC;
