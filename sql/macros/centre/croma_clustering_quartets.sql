-- croma_clustering_quartets(relation, ...): how far clusters of each quartet follow the label rather
-- than the confounder.
--
-- grain   one row per quartet (and value of by)
-- input   relation: name of a relation with a row per quartet and trial, such as the view clusterings;
--         the other arguments name its columns; by := 'encoder' tells encoders apart
-- output  trials: how many; ari_bio, ari_confounder: means over them; clustering_score: the mean of
--         ari_bio - ari_confounder, above 0 where clusters follow the label; clustering_score_sd: its
--         standard deviation
-- NULL    a trial in which either index is NULL, NaN or infinite is left out; all that is left without
--         a trial, and the standard deviation of one
-- source  Koemen et al. 2025, PathoROB
CREATE OR REPLACE MACRO croma_clustering_quartets(
    relation,
    quartet := 'quartet',
    ari_bio := 'ari_bio',
    ari_confounder := 'ari_confounder',
    "by" := NULL
) AS TABLE
WITH
    " trials" AS (
        SELECT
            " row"[coalesce("by", ' everything')] AS scope,
            " row"[quartet] AS quartet,
            " row"[ari_bio]::DOUBLE AS bio,
            " row"[ari_confounder]::DOUBLE AS conf
        FROM (SELECT *, NULL::VARCHAR AS " everything" FROM query_table(relation)) AS " row"
    ),
    " lists" AS (
        SELECT
            " trials".scope,
            " trials".quartet,
            list(bio ORDER BY bio) FILTER (isfinite(bio - conf)) AS bios,
            list(conf ORDER BY conf) FILTER (isfinite(bio - conf)) AS confs,
            list(bio - conf ORDER BY bio - conf) FILTER (isfinite(bio - conf)) AS scores
        FROM " trials"
        GROUP BY ALL
    )
SELECT
    " lists".quartet,
    coalesce(len(scores), 0) AS trials,
    list_avg(bios) AS ari_bio,
    list_avg(confs) AS ari_confounder,
    list_avg(scores) AS clustering_score,
    list_aggregate(scores, 'stddev_samp') AS clustering_score_sd,
    " lists".scope
FROM " lists";
