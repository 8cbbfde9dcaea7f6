-- croma_silhouettes(relation, cluster := 'confounder', ...): the cosine silhouette of every row.
--
-- grain   one row per row of the relation (on_bad_vectors := 'drop': that has a usable vector)
-- input   relation: name of a table, view, CTE, Parquet path or registered frame; the other arguments
--         name its columns; by := 'encoder' measures each encoder by itself
-- output  silhouette: (b - a) / max(a, b) in [-1, 1], where a is the mean distance to the other members
--         of the row's own cluster, b the lowest mean distance to those of another; 0 for the only
--         member of a cluster. Its mean over the confounder is FM-SI: the lower, the less of the
--         confounder is encoded
-- NULL    silhouette where there is one cluster only, and (on_bad_vectors := 'null') where the vector
--         has no direction
-- notes   By means of clusters, without any pair of rows: n x clusters distances. FM-SI per encoder:
--             SELECT scope, avg(silhouette) AS fm_si
--             FROM croma_silhouettes('tiles')
--             GROUP BY scope
-- source  Rousseeuw 1987; the same as sklearn.metrics.silhouette_samples
CREATE OR REPLACE MACRO croma_silhouettes(
    relation,
    cluster := 'confounder',
    sample_id := 'sample_id',
    embedding := 'embedding',
    "by" := NULL,
    on_bad_vectors := 'error'
) AS TABLE
WITH
    scopes AS (
        SELECT
            scope,
            list(id) AS sample_ids,
            list(id::VARCHAR) AS sample_names,
            list(vector) AS vectors,
            list(member) AS clusters
        FROM (
            SELECT
                " row"[coalesce("by", ' everything')] AS scope,
                " row"[sample_id] AS id,
                " row"[embedding] AS vector,
                " row"[cluster] AS member
            FROM (SELECT *, NULL::VARCHAR AS " everything" FROM query_table(relation)) AS " row"
        )
        GROUP BY scope
    ),
    found AS (
        SELECT
            unnest(sample_ids) AS sample_id,
            unnest(clusters) AS cluster,
            unnest("the croma_sql silhouettes (to add them, run in python: import croma_sql; croma_sql.register(con))"(
                sample_names, vectors, clusters, on_bad_vectors::VARCHAR,
                current_setting('threads')::BIGINT, scope::VARCHAR,
                {'sample_id': sample_id, 'embedding': embedding, 'cluster': cluster}
            )) AS measured,
            scope
        FROM scopes
    )
SELECT
    found.sample_id,
    found.cluster,
    found.measured.silhouette,
    found.scope
FROM found
WHERE found.measured.usable OR on_bad_vectors <> 'drop';
