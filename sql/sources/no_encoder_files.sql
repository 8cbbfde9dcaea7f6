-- encoder_files of a warehouse that has no attributes of encoders.
--
-- grain   no row
-- NULL    none
SELECT NULL::VARCHAR AS encoder, NULL::BOOLEAN AS is_control
WHERE false;
