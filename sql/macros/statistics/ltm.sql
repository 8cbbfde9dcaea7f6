-- ltm(x, alpha := 0.10): lower-tail mean, the mean of the margins at or below their alpha-quantile.
--
-- grain   aggregate: one value per group; also in HAVING, ORDER BY and OVER (...)
-- input   x DOUBLE, margins; alpha in [0, 1]
-- NULL    an undefined margin (NULL or NaN) is left out; no defined margin at all, or an alpha that
--         is no fraction, gives NULL
-- source  Grisi et al. 2026, LTM_alpha; the quantile is linearly interpolated
-- notes   The interpolated quantile lies between two neighbours of the sorted list, or on the lower
--         one: what is at or below it is what is at or below that one. One list serves all: a macro
--         with exactly one aggregate may be used OVER (...), a struct passed from lambda to lambda
--         may not be used in HAVING, and a sum in sorted order has the same last bit in every run.
CREATE OR REPLACE MACRO ltm(x, alpha := 0.10) AS
    list_transform(
        [list(x::DOUBLE ORDER BY x::DOUBLE ASC) FILTER (NOT isnan(x::DOUBLE))],
        lambda margins: list_avg(list_filter(
            margins,
            lambda margin: margin <= margins[
                CASE
                    WHEN alpha::DOUBLE BETWEEN 0 AND 1
                    THEN floor(alpha::DOUBLE * (len(margins) - 1))::BIGINT + 1
                END
            ]
        ))
    )[1];
