-- stored_tables: whether what was computed is up to date: of the vectors, the samples and the benchmark that
-- there were when the warehouse was connected to.
--
-- grain   one row per stored table of a benchmark and encoder, and one per dataset of an encoder that
--         harmonising or pooling made
-- reads   stored_table_states
-- output  table_name: as under scores/, such as 'typed_neighbours', which margins are of, 'neighbours',
--         'units' or 'silhouettes'; 'harmonised' or 'pooled' of vectors. state: 'up to date', 'stale', or
--         'unknown' where a file cannot be read; is_stale: it is not up to date. reason: "vectors of
--         encoder 'e' changed", "rows of benchmark 'b' changed", "benchmark 'b' was removed" and the like.
--         Scores of an encoder that was made from another are stale too where that encoder is: make it
--         again, then score
-- NULL    benchmark of vectors; dataset of scores; reason of what is up to date
CREATE OR REPLACE VIEW stored_tables AS
SELECT table_name, benchmark, encoder, dataset, state, state <> 'up to date' AS is_stale, reason
FROM main.stored_table_states;
