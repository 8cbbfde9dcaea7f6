-- encoder_files: the file of encoder attributes of a warehouse, as it lies there.
--
-- grain   one row per encoder
-- input   $files: path of encoders.parquet, in a list
-- NULL    an attribute that is not known of an encoder; is_control where the file says nothing of it
SELECT encoder, is_control, * EXCLUDE (encoder, is_control)
FROM (
    SELECT NULL::BOOLEAN AS is_control
    WHERE false
    UNION ALL BY NAME
    FROM read_parquet($files, hive_partitioning := false)
);
