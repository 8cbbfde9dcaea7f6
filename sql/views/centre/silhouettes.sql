-- silhouettes: how near every sample is to its own label and confounder, against the others.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   silhouette_files, attributes_but
-- output  label_silhouette, confounder_silhouette: cosine silhouettes within the subset (among those
--         that match, where neighbours must); see croma_silhouettes
-- NULL    a silhouette where there is no other label or confounder, or the vector has no direction;
--         subset, matched where the benchmark has none; attributes of a sample that has since been
--         removed
-- notes   Every attribute of the sample stands beside, except one that goes by the name of a column
--         here.
CREATE OR REPLACE VIEW silhouettes AS
SELECT
    measured.benchmark,
    measured.encoder,
    measured.subset,
    measured.sample_id,
    measured.label,
    measured.confounder,
    measured.group_id,
    measured.matched,
    measured.label_silhouette,
    measured.confounder_silhouette,
    attributes.* EXCLUDE (sample_id)
FROM main.silhouette_files AS measured
LEFT JOIN attributes_but([
    'benchmark', 'encoder', 'subset', 'label', 'confounder', 'group_id', 'matched',
    'label_silhouette', 'confounder_silhouette'
]) AS attributes ON attributes.sample_id = measured.sample_id;
