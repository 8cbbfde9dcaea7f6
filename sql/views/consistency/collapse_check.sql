-- collapse_check: whether an encoder is consistent, or merely collapsed, at a min_spread of 0.01.
--
-- grain   one row per benchmark and encoder
-- reads   collapse_check_at(0.01)
-- output  as collapse_check_at
-- NULL    as in collapse_check_at
CREATE OR REPLACE VIEW collapse_check AS
FROM collapse_check_at(0.01);
