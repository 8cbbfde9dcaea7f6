-- Does the number of nuclei or the scanner decide which tile is near?
SELECT
    sample_id,
    nuclei AS label,
    scanner AS confounder,
    place AS group_id
FROM samples
WHERE dataset = 'ihc_photograph';
