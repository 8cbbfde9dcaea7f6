-- Which encoder is robust, for which biology?
SELECT benchmark, encoder, n, croma, f0, ltm10
FROM encoder_summary
ORDER BY benchmark, croma DESC;
