-- And where on the slide? The worst of all scanners and zones, for the two networks.
SELECT
    encoder,
    scanner,
    zone,
    count(*) AS n,
    median(margin) AS croma,
    f0(margin) AS f0,
    ltm(margin, 0.10) AS ltm10
FROM margins
WHERE benchmark = 'dab_across_scanners' AND encoder LIKE 'efficientnet%'
GROUP BY ALL
ORDER BY f0 DESC
LIMIT 5;
