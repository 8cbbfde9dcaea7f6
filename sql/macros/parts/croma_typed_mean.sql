-- croma_typed_mean(distances, m): mean distance to the m nearest neighbours of one type.
--
-- grain   scalar
-- input   distances DOUBLE[], nearest first
-- NULL    fewer than m neighbours
CREATE OR REPLACE MACRO croma_typed_mean(distances, m) AS
    CASE WHEN len(distances) >= m THEN list_avg(distances[:m::BIGINT]) END;
