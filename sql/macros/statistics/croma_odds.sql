-- croma_odds(margin): the typed-distance odds d_OS / d_SO that a margin stands for.
--
-- grain   scalar
-- input   margin in [-1, 1], of one sample or the median of many: (1 + margin) / (1 - margin)
-- output  at least 0; 1 where matches and distractors are equally far, 2 at a margin of 1/3
-- NULL    the margin is NULL, NaN or outside of [-1, 1], or 1: no odds are that large
-- source  Grisi et al. 2026, section 2.4
CREATE OR REPLACE MACRO croma_odds(margin) AS
    CASE WHEN margin >= -1 AND margin < 1 THEN (1 + margin) / (1 - margin) END;
