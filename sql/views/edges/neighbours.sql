-- neighbours: the nearest eligible candidates of any type, up to the k scored (croma-sql score --k).
--
-- grain   one row per benchmark, encoder, subset, sample and rank (1 = nearest)
-- reads   neighbour_files
-- output  type is SS, SO, OS or OO: label and confounder the Same or Other. label_hit and
--         confounder_hit: whether the class that most of the neighbours up to this rank have is the
--         sample's own; a tie goes to the class that comes first in the scope by sample_id
-- NULL    subset where the benchmark has none; a missing neighbour is a missing row
CREATE OR REPLACE VIEW neighbours AS
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    unnest(type) AS type,
    generate_subscripts(neighbour_id, 1) AS rank,
    unnest(neighbour_id) AS neighbour_id,
    unnest(distance) AS distance,
    unnest(label_hit) AS label_hit,
    unnest(confounder_hit) AS confounder_hit
FROM main.neighbour_files;
