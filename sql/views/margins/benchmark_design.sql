-- benchmark_design: which of the scored rows can have a margin at m = 5, and why the others cannot.
--
-- grain   one row per benchmark, encoder, subset, matched, label and confounder
-- reads   typed_neighbour_files, croma_design
-- output  as of croma_design; only rows whose vector has a direction are counted
-- NULL    subset, matched where the benchmark has none; problem where every row can have a margin
-- notes   A benchmark that is not scored yet is shown by croma-sql benchmark W NAME --show.
CREATE OR REPLACE VIEW benchmark_design AS
WITH scored AS (
    SELECT
        {'benchmark': benchmark, 'encoder': encoder, 'subset': subset, 'matched': matched} AS scope,
        label,
        confounder,
        group_id
    FROM main.typed_neighbour_files
    WHERE usable
)
SELECT
    scope.benchmark,
    scope.encoder,
    scope.subset,
    scope.matched,
    * EXCLUDE (scope)
FROM croma_design('scored', "by" := 'scope');
