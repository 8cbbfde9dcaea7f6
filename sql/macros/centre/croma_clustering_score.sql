-- croma_clustering_score(relation, ...): how far clusters follow the label rather than the
-- confounder, over all quartets.
--
-- grain   one row (per value of by)
-- input   as croma_clustering_quartets
-- output  quartets: how many have a score; clustering_score: the mean over quartets of the mean over
--         trials of ari_bio - ari_confounder: about 1 where k-means finds the labels, about -1 where it
--         finds the confounders, 0 where clusters are as much of one as of the other;
--         clustering_score_sd: the mean of the quartets' standard deviations
-- NULL    what no quartet has
-- source  Koemen et al. 2025, PathoROB
CREATE OR REPLACE MACRO croma_clustering_score(
    relation,
    quartet := 'quartet',
    ari_bio := 'ari_bio',
    ari_confounder := 'ari_confounder',
    "by" := NULL
) AS TABLE
SELECT
    count(" of".clustering_score) AS quartets,
    list_avg(list(" of".clustering_score ORDER BY " of".clustering_score)) AS clustering_score,
    list_avg(list(" of".clustering_score_sd ORDER BY " of".clustering_score_sd)) AS clustering_score_sd,
    " of".scope
FROM croma_clustering_quartets(relation, quartet, ari_bio, ari_confounder, "by") AS " of"
GROUP BY " of".scope;
