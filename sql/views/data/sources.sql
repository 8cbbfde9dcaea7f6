-- sources: what vectors were imported from.
--
-- grain   one row per encoder, dataset and source file, of a file whose vectors lie in several parts one
--         row per part; of a slide without tiles one row with n = 0
-- reads   source_files
-- output  level: 'tile', 'slide' or 'sample', what a vector is of; format: the writer; embedding: the
--         dataset, column or key that was asked for; path, size and modified: of the file; first_row, n:
--         which of its rows these are; n_dropped, n_null: those of them without direction; part and
--         part_row: where they lie; d, dtype: of the vectors; checksum: CRC-32 of those that are stored;
--         attributes: what the writer says of the file
-- NULL    slide_id, where samples bring their own ids; embedding, where the writer's own was taken; part,
--         where there are no rows, and of files that were imported as a whole
CREATE OR REPLACE VIEW sources AS
SELECT
    encoder,
    url_decode(regexp_extract(croma_sql_file, '([^/\\]+)\.parquet$', 1)) AS dataset,
    slide_id,
    level,
    format,
    embedding,
    path,
    size,
    make_timestamp_ns(mtime_ns) AS modified,
    first_row,
    n,
    n_dropped,
    n_null,
    part,
    part_row,
    d,
    dtype,
    checksum,
    attributes::JSON AS attributes
FROM main.source_files;
