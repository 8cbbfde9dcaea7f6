-- Where on the slide do all encoders fail? The regions and tissue contents that are worst together.
SELECT
    region,
    CASE WHEN tissue_fraction < 0.5 THEN 'mostly background' ELSE 'mostly tissue' END AS content,
    count(DISTINCT place) AS places,
    median(margin) AS croma,
    f0(margin) AS f0,
    ltm(margin, 0.10) AS ltm10
FROM margins
WHERE benchmark = 'dab_across_scanners'
GROUP BY ALL
ORDER BY f0 DESC
LIMIT 6;
