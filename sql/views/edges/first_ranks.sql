-- first_ranks: where the first SO and the first OS stand among all eligible candidates of a sample.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   typed_neighbour_files
-- NULL    where a sample has no such neighbour, or no vector; everywhere unless scored with
--         croma-sql score --first-ranks; subset where the benchmark has none
CREATE OR REPLACE VIEW first_ranks AS
SELECT
    benchmark,
    encoder,
    subset,
    sample_id,
    label,
    confounder,
    group_id,
    first_so_rank,
    first_os_rank
FROM main.typed_neighbour_files;
