-- croma_n_shared(shared_at, k): how many neighbours are among the k nearest under every acquisition.
--
-- grain   scalar
-- input   shared_at: ascending; its j-th value, never below j, is the smallest K at which j neighbours
--         are among the K nearest under every acquisition
-- NULL    where shared_at or k is
CREATE OR REPLACE MACRO croma_n_shared(shared_at, k) AS
    len(list_filter(shared_at[:k], lambda reached: reached <= k));
