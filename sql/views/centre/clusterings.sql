-- clusterings: every run of k-means on a quartet, compared with label and confounder.
--
-- grain   one row per benchmark, encoder, quartet and trial
-- reads   clustering_files
-- output  ari_bio, ari_confounder: adjusted Rand indices; clustering_score: their difference
-- NULL    k and the indices where no number of clusters could be tried: all vectors of the quartet are
--         the same, or the least k asked for is more than its different vectors, or not less than its
--         samples
CREATE OR REPLACE VIEW clusterings AS
SELECT
    benchmark,
    encoder,
    quartet,
    trial,
    k,
    ari_bio,
    ari_confounder,
    ari_bio - ari_confounder AS clustering_score
FROM main.clustering_files;
