-- croma_centred_ranks(values): ranks of a list's values minus their mean; equals share a mean rank.
--
-- grain   scalar: a list as long as the one given
-- input   values DOUBLE[], none of them NULL
-- NULL    none
-- notes   Values are ranked from below and from above, equals by their place both times: half the
--         difference is the centred mean rank. No lambda looks at anything but its element, since
--         DuckDB would copy that for each. 0 is added because 0 and -0 are equals.
CREATE OR REPLACE MACRO croma_centred_ranks("values") AS
    list_transform(
        list_zip(
            list_grade_up(
                list_grade_up(
                    list_zip(list_transform("values", lambda x: x + 0), range(len("values"))),
                    'ASC', 'NULLS LAST'
                ),
                'ASC', 'NULLS LAST'
            ),
            list_grade_up(
                list_grade_up(
                    list_zip(list_transform("values", lambda x: x + 0), range(len("values"), 0, -1)),
                    'DESC', 'NULLS LAST'
                ),
                'ASC', 'NULLS LAST'
            )
        ),
        lambda ranks: (ranks[1] - ranks[2]) / 2
    );
