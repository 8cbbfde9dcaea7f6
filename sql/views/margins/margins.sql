-- margins: the margin of every scored sample at m = 5, the published setting.
--
-- grain   one row per benchmark, encoder, subset and sample
-- reads   margins_at(5)
-- NULL    as in margins_at
CREATE OR REPLACE VIEW margins AS
FROM margins_at(5);
