-- croma_checked_depth(what, asked, depth, benchmark, encoder): a number of neighbours, or an error where
-- it is no whole number from 1 to the depth scored.
--
-- grain   scalar
-- input   what: 'm' or 'k'; asked: the number; depth, benchmark, encoder: of the row it is asked of
-- NULL    none: NULL is an error
CREATE OR REPLACE MACRO croma_checked_depth(what, asked, depth, benchmark, encoder) AS
    CASE
        WHEN asked BETWEEN 1 AND depth AND asked = floor(asked) THEN asked::BIGINT
        ELSE error(what || ' is ' || coalesce(asked::VARCHAR, 'NULL') || ', but benchmark "' || benchmark
            || '" was scored to a depth of ' || depth || ' for encoder "' || encoder || '"; ' || what
            || ' can be a whole number up to ' || depth || ', or score again with a larger --' || what)
    END;
