-- encoders: every encoder there is, with its attributes (croma-sql import encoders).
--
-- grain   one row per encoder that has vectors, scores or attributes
-- reads   embedding_files, typed_neighbour_files, neighbour_files, unit_files, encoder_files,
--         harmonised_files, pooled_files
-- output  is_control: a natural-image encoder or the like, shown in comparisons, never ranked; false
--         where nothing is said; is_harmonised: croma-sql harmonise made it, or it was pooled from such
--         a one, once or twice: shown in comparisons, and ranked only where that is asked for
-- NULL    an attribute that is not known of an encoder
CREATE OR REPLACE VIEW encoders AS
WITH
    known AS (
        SELECT encoder FROM main.embedding_files
        UNION
        SELECT encoder FROM main.typed_neighbour_files
        UNION
        SELECT encoder FROM main.neighbour_files
        UNION
        SELECT encoder FROM main.unit_files
        UNION
        SELECT encoder FROM main.encoder_files
    ),
    pooled_once AS (
        SELECT encoder
        FROM main.pooled_files
        WHERE pooled_from IN (SELECT origin.encoder FROM main.harmonised_files AS origin)
    ),
    harmonised AS (
        SELECT encoder FROM main.harmonised_files
        UNION
        SELECT encoder FROM pooled_once
        UNION
        SELECT encoder
        FROM main.pooled_files
        WHERE pooled_from IN (SELECT origin.encoder FROM pooled_once AS origin)
    )
SELECT
    encoder,
    coalesce(encoder_files.is_control::BOOLEAN, false) AS is_control,
    encoder IN (SELECT harmonised.encoder FROM harmonised) AS is_harmonised,
    encoder_files.* EXCLUDE (encoder, is_control)
FROM known
LEFT JOIN main.encoder_files USING (encoder);
