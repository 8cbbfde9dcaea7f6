-- spearman(x, y): Spearman's rank correlation, of encoders or of anything else.
--
-- grain   aggregate: one value per group; also in HAVING, ORDER BY and OVER (...)
-- input   x, y DOUBLE; equals share their mean rank
-- NULL    a pair in which either is NULL or NaN is left out; fewer than two pairs, or a side whose
--         values are all equal, give NULL
-- source  Spearman 1904; the same as scipy.stats.spearmanr
-- notes   The correlation of ranks is the cosine of centred ranks.
CREATE OR REPLACE MACRO spearman(x, y) AS
    list_transform(
        [list([x::DOUBLE, y::DOUBLE]) FILTER (NOT isnan(x::DOUBLE) AND NOT isnan(y::DOUBLE))],
        lambda pairs: nullif(
            list_cosine_similarity(
                croma_centred_ranks(list_transform(pairs, lambda pair: pair[1])),
                croma_centred_ranks(list_transform(pairs, lambda pair: pair[2]))
            ),
            'nan'::DOUBLE
        )
    )[1];
