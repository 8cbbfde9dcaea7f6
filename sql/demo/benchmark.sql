-- The demo's benchmark: does the stain or the scanner decide who is near?
SELECT
    sample_id,
    dab AS label,
    scanner AS confounder,
    place AS group_id
FROM samples
WHERE dataset = 'ihc_photograph';
