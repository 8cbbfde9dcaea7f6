-- croma_dominates(x, y, other_x, other_y): (x, y) is at least as good on both axes and better on one.
--
-- grain   scalar
-- input   two points of a plane in which more is better on both axes
-- NULL    an input is NULL
-- source  Grisi et al. 2026: what is dominated by no other point is on the Pareto frontier
CREATE OR REPLACE MACRO croma_dominates(x, y, other_x, other_y) AS
    x >= other_x AND y >= other_y AND (x > other_x OR y > other_y);
