-- Does the DAB stain or the scanner decide which tile is near?
SELECT
    sample_id,
    dab AS label,
    scanner AS confounder,
    place AS group_id
FROM samples
WHERE dataset = 'ihc_photograph';
