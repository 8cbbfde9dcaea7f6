-- stored_table_states: what the warehouse knew, when it was connected to, of whether stored tables are up
-- to date.
--
-- grain   one row per stored table of a benchmark and encoder, and one per dataset of an encoder that
--         harmonising or pooling made
-- input   $tables, $benchmarks, $encoders, $datasets, $states, $reasons: lists of one length, see
--         stored_tables
-- NULL    see stored_tables
CREATE OR REPLACE TABLE stored_table_states AS
SELECT
    unnest($tables::VARCHAR[]) AS table_name,
    unnest($benchmarks::VARCHAR[]) AS benchmark,
    unnest($encoders::VARCHAR[]) AS encoder,
    unnest($datasets::VARCHAR[]) AS dataset,
    unnest($states::VARCHAR[]) AS state,
    unnest($reasons::VARCHAR[]) AS reason;
