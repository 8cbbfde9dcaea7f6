-- croma_quoted(name): a label or confounder as it stands in the name of a subset.
--
-- grain   scalar
-- input   name of any type
-- NULL    name is NULL
-- notes   Quoted only where it would be taken for a part of what stands around it, as in
--         A | B under X | Y; so no two subsets ever have the same name.
CREATE OR REPLACE MACRO croma_quoted(name) AS
    CASE
        WHEN regexp_matches(name::VARCHAR, '^$|[|"]|under')
        THEN '"' || replace(name::VARCHAR, '"', '""') || '"'
        ELSE name::VARCHAR
    END;
