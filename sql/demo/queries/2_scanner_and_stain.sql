-- On which scanner and class does each encoder confuse DAB with the scanner?
SELECT
    encoder,
    scanner,
    dab,
    count(*) AS n,
    median(margin) AS croma,
    f0(margin) AS f0,
    ltm(margin, 0.10) AS ltm10
FROM margins
WHERE benchmark = 'dab_across_scanners'
GROUP BY ALL
ORDER BY encoder, croma;
