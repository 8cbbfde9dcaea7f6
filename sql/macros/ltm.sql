-- ltm(x, alpha := 0.10): lower-tail mean, the mean of the margins at or below their alpha-quantile.
--
-- grain   aggregate: one value per group; also OVER (...)
-- input   x DOUBLE, margins; alpha in [0, 1], the same for all rows of a group
-- NULL    an undefined margin (NULL or NaN) is left out; no defined margin at all gives NULL
-- source  Grisi et al. 2026, LTM_alpha; the quantile is linearly interpolated
-- notes   One sorted list serves quantile and mean: a macro with exactly one aggregate may be used
--         OVER (...), and a sum in sorted order has the same last bit in every run.
CREATE OR REPLACE MACRO ltm(x, alpha := 0.10) AS
    list_transform(
        list_transform(
            list_transform(
                [list(x::DOUBLE ORDER BY x::DOUBLE ASC) FILTER (NOT isnan(x::DOUBLE))],
                lambda margins: {
                    'margins': margins,
                    'at':
                        CASE
                            WHEN alpha::DOUBLE BETWEEN 0 AND 1 THEN alpha::DOUBLE * (len(margins) - 1)
                            WHEN alpha IS NOT NULL
                            THEN error('ltm: alpha is ' || alpha || '; it is a fraction from 0 to 1')
                        END
                }
            ),
            lambda tail: {
                'margins': tail.margins,
                'quantile':
                    tail.margins[floor(tail.at)::BIGINT + 1]
                    + (tail.margins[ceil(tail.at)::BIGINT + 1] - tail.margins[floor(tail.at)::BIGINT + 1])
                    * (tail.at - floor(tail.at))
            }
        ),
        lambda tail: list_avg(list_filter(tail.margins, lambda margin: margin <= tail.quantile))
    )[1];
