-- encoders: every encoder there is, with its attributes (croma-sql import encoders).
--
-- grain   one row per encoder that has vectors, scores or attributes
-- reads   embedding_files, typed_neighbour_files, neighbour_files, unit_files, encoder_files
-- output  is_control: a natural-image encoder or the like, shown in comparisons, never ranked; false
--         where nothing is said
-- NULL    an attribute that is not known of an encoder
CREATE OR REPLACE VIEW encoders AS
WITH known AS (
    SELECT encoder FROM main.embedding_files
    UNION
    SELECT encoder FROM main.typed_neighbour_files
    UNION
    SELECT encoder FROM main.neighbour_files
    UNION
    SELECT encoder FROM main.unit_files
    UNION
    SELECT encoder FROM main.encoder_files
)
SELECT
    encoder,
    coalesce(encoder_files.is_control::BOOLEAN, false) AS is_control,
    encoder_files.* EXCLUDE (encoder, is_control)
FROM known
LEFT JOIN main.encoder_files USING (encoder);
