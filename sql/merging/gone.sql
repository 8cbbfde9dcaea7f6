-- gone: samples of sources that are replaced, which these do not have any more.
--
-- grain   one row per sample
-- reads   replaced: ids of samples whose sources are replaced; here: samples that arrive; held: ids
--         of vectors of other encoders, which keep their samples
-- NULL    none
SELECT sample_id
FROM replaced
ANTI JOIN here USING (sample_id)
ANTI JOIN held USING (sample_id);
