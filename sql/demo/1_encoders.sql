-- Which encoder is robust, and how bad is its tail?
SELECT encoder, n, croma, f0, ltm10
FROM encoder_summary
WHERE benchmark = 'dab_across_scanners'
ORDER BY croma DESC;
