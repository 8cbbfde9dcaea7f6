-- mari(log_so, log_os): margin-aware Robustness Index, the share of SO in the distance-weighted
-- evidence of a group.
--
-- grain   aggregate: one value per group; for a single sample, its own MaRI
-- input   logarithms of the sums of exp(-distance / tau) over a sample's SO and over its OS
--         neighbours, NULL where it has none; see neighbourhoods_at. Or -distance / tau per edge
-- NULL    a sample without either is left out; no evidence at all gives NULL
-- source  Grisi et al. 2026, equation 7
-- notes   Weights are summed relative to the largest one, so none underflows that counts. As in ltm,
--         one sorted list serves all, and its sum has the same last bit in every run.
CREATE OR REPLACE MACRO mari(log_so, log_os) AS
    list_transform(
        [list([log_so::DOUBLE, log_os::DOUBLE] ORDER BY log_so::DOUBLE, log_os::DOUBLE)],
        lambda evidence: list_transform(
            [list_max(flatten(evidence))],
            lambda largest: list_sum(list_transform(
                evidence, lambda e: coalesce(exp(e[1] - largest), 0)
            )) / nullif(list_sum(list_transform(
                evidence,
                lambda e: coalesce(exp(e[1] - largest), 0) + coalesce(exp(e[2] - largest), 0)
            )), 0)
        )[1]
    )[1];
