-- odd: the first texts that are no numbers.
--
-- grain   one row per text, in the order of text; four at most
-- reads   texts (text: VARCHAR)
-- NULL    texts that are NULL are passed over
SELECT DISTINCT text
FROM texts
WHERE text IS NOT NULL AND TRY_CAST(text AS DOUBLE) IS NULL
ORDER BY text
LIMIT 4;
