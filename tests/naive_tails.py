"""Slow, obvious versions of enrichment and subgroups. Shares no code with the package."""

import math
from itertools import combinations

from scipy import stats


def by_group(rows, group, value):
    """Sum of value(i) over the rows i of each group, in a dictionary."""
    sums = {}
    for i in rows:
        sums[group[i]] = sums.get(group[i], 0.0) + value(i)
    return sums


def intraclass_correlation(y, group):
    n, sizes, total = len(y), {}, {}
    for value, g in zip(y, group, strict=True):
        sizes[g] = sizes.get(g, 0) + 1
        total[g] = total.get(g, 0.0) + value
    k, mean = len(sizes), math.fsum(y) / n
    if k in (1, n):
        return 0.0
    between = sum(sizes[g] * (total[g] / sizes[g] - mean) ** 2 for g in sizes) / (k - 1)
    within = sum((v - total[g] / sizes[g]) ** 2 for v, g in zip(y, group, strict=True)) / (n - k)
    size = (n - sum(s * s for s in sizes.values()) / n) / (k - 1)
    return min(1.0, max(0.0, (between - within) / (between + (size - 1) * within)))


def model_variance(rows, inside, group, weight, variance, alike):
    """Of the sum of weight(x) y: (1 - r) sum w^2 v + r sum_g (sum w sqrt v)^2."""
    own = sum(weight(i in inside) ** 2 * variance(i in inside) for i in rows)
    shared = by_group(rows, group, lambda i: weight(i in inside) * math.sqrt(variance(i in inside)))
    return (1 - alike) * own + alike * sum(s * s for s in shared.values())


def score(y, inside, group, odds_ratio=1.0):
    """Standardised efficient score of an odds ratio, cluster-robust or by the model."""
    rows = range(len(y))
    n, rest, tail = len(inside), len(y) - len(inside), sum(y)
    low, high = 0.0, 1.0  # probability outside, such that the expected number is the number seen
    for _ in range(200):
        p0 = (low + high) / 2
        p1 = odds_ratio * p0 / (1 - p0 + odds_ratio * p0)
        low, high = (p0, high) if n * p1 + rest * p0 < tail else (low, p0)
    v1, v0 = p1 * (1 - p1), p0 * (1 - p0)
    c = n * v1 / (n * v1 + rest * v0)
    contributions = by_group(
        rows, group, lambda i: ((i in inside) - c) * (y[i] - (p1 if i in inside else p0))
    )
    robust = sum(u * u for u in contributions.values())
    alike = intraclass_correlation(y, group)
    model = model_variance(rows, inside, group, lambda x: x - c, lambda x: v1 if x else v0, alike)
    return sum(contributions.values()) / math.sqrt(max(robust, model))


def equally_large(rows, group):
    """How many groups of one size there would be, were some not larger than others."""
    counts = by_group(rows, group, lambda i: 1).values()
    return sum(counts) ** 2 / sum(k * k for k in counts)


def lower(y, whole, inside, group, variance, alike):
    """Difference of the mean inside to that of the whole, its variance, Student's chance."""
    mean = math.fsum(y[i] for i in whole) / len(whole)
    mean_in = math.fsum(y[i] for i in inside) / len(inside)
    mean_out = math.fsum(y[i] for i in whole if i not in inside) / (len(whole) - len(inside))
    share = len(inside) / len(whole)
    influence = by_group(
        whole,
        group,
        lambda i: (1 - share) * (y[i] - mean_in) if i in inside else -share * (y[i] - mean_out),
    )
    groups = min(equally_large(part, group) for part in (inside, whole - inside))
    few = max(groups - 1, 1e-6)
    robust = sum(u * u for u in influence.values()) * (few + 1) / few
    model = model_variance(whole, inside, group, lambda x: x - share, lambda x: variance, alike)
    larger = max(robust, model)
    many = max(equally_large(range(len(y)), group) - 1, 1e-6)
    freedom = larger**2 / (model**2 / many + (larger - model) ** 2 / few)
    error = larger / len(inside) ** 2
    return mean_in - mean, error, stats.t.cdf((mean_in - mean) / math.sqrt(error), freedom)


def shrunken(seen, variance):
    share, spread = 0.1, sum(d * d for d in seen) / len(seen) / 0.1
    for _ in range(100):
        real = []
        for d, v in zip(seen, variance, strict=True):
            of_real = share * stats.norm.pdf(d, 0, math.sqrt(spread + v))
            of_none = (1 - share) * stats.norm.pdf(d, 0, math.sqrt(v))
            real.append(of_real / (of_real + of_none))
        kept = [spread / (spread + v) for v in variance]
        share = sum(real) / len(real)
        spread = sum(
            r * ((k * d) ** 2 + k * v)
            for r, k, d, v in zip(real, kept, seen, variance, strict=True)
        ) / sum(real)
    return [r * k * d for r, k, d in zip(real, kept, seen, strict=True)]


def subgroups(y, group, attributes, min_size, min_groups, most=3):
    """Every compared subgroup: conditions -> what is known of it; conditions are (name, value)."""
    rows = range(len(y))
    mean = math.fsum(y) / len(y)
    variance, alike = sum((v - mean) ** 2 for v in y) / len(y), intraclass_correlation(y, group)
    inside = {(): frozenset(rows)}
    for size in range(1, most + 1):
        for names in combinations(attributes, size):
            cells = {}
            for i in rows:
                cells.setdefault(tuple((name, attributes[name][i]) for name in names), set()).add(i)
            for conditions, cell in cells.items():
                if len(cell) >= min_size and len({group[i] for i in cell}) >= min_groups:
                    inside[conditions] = frozenset(cell)
    first = {}
    for conditions, cell in inside.items():
        first.setdefault(cell, conditions)
    compared = [conditions for conditions in first.values() if conditions]

    def refined(conditions):
        return list(combinations(conditions, len(conditions) - 1)) if len(conditions) > 1 else []

    refinements = {}
    for conditions in compared:
        for parent in refined(conditions):
            refinements[parent] = refinements.get(parent, 0) + 1
    found = {}
    for conditions in compared:
        cell = inside[conditions]
        difference, error, p = lower(y, inside[()], cell, group, variance, alike)
        listed = difference < 0
        for parent in refined(conditions):
            chance = lower(y, inside[parent], cell, group, variance, alike)[2]
            listed &= chance * refinements[parent] <= 0.01
            p = max(p, chance)
        found[conditions] = {
            "rows": cell,
            "d": difference,
            "error": error,
            "p": p,
            "listed": listed,
        }
    scores = shrunken([f["d"] for f in found.values()], [f["error"] for f in found.values()])
    ordered = sorted(f["p"] for f in found.values())
    m = len(ordered)
    for f, shrunk in zip(found.values(), scores, strict=True):
        f["score"] = -shrunk
        f["q"] = min(min(p * m / (k + 1) for k, p in enumerate(ordered) if p >= f["p"]), 1.0)
    return found
