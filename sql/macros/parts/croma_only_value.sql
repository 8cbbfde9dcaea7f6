-- croma_only_value(x): the value that all rows of a group share.
--
-- grain   aggregate: one value per group
-- input   x of any type; rows in which it is NULL are passed over
-- NULL    where rows differ, or none has a value
CREATE OR REPLACE MACRO croma_only_value(x) AS
    CASE WHEN min(x) = max(x) THEN min(x) END;
