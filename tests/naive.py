"""Slow, obvious versions of the metrics. Shares no code with the package."""

import math
import operator


def inner(x, y):
    return math.fsum(map(operator.mul, x, y))


def within_range(x):
    exponent = math.frexp(max(map(abs, x)))[1]
    return [math.ldexp(value, -exponent) for value in x]


def neighbours(vectors, label, confounder, group, ids, match=None):
    """Per row: {'SO': [(distance, id), ...], 'OS', 'ANY'}, nearest first, ties by id as text.

    `match`: what a row and its neighbours must agree in, one value per row."""
    vectors = [within_range(x) for x in vectors]
    square = [inner(x, x) for x in vectors]
    found = []

    def cosine_distance(i, j):
        return max(0.0, 1.0 - inner(vectors[i], vectors[j]) / math.sqrt(square[i] * square[j]))

    for i in range(len(label)):
        of_type = {"SO": [], "OS": [], "ANY": []}
        for j in range(len(label)):
            if group[i] == group[j] or (match is not None and match[i] != match[j]):
                continue
            edge = (cosine_distance(i, j), str(ids[j]))
            of_type["ANY"].append(edge)
            if label[i] == label[j] and confounder[i] != confounder[j]:
                of_type["SO"].append(edge)
            if label[i] != label[j] and confounder[i] == confounder[j]:
                of_type["OS"].append(edge)
        found.append({kind: sorted(edges) for kind, edges in of_type.items()})
    return found


def first_rank(neighbours, kind):
    """Place of the first of a type among all of any type, from 1; None where there is none."""
    ids = [other for _, other in neighbours["ANY"]]
    return ids.index(neighbours[kind][0][1]) + 1 if neighbours[kind] else None


def margin(neighbours, m):
    """(d_so, d_os, margin, reason) of one row of `neighbours`; None where undefined."""
    means = []
    for kind in ("SO", "OS"):
        distances = [distance for distance, _ in neighbours[kind][:m]]
        means.append(sum(distances) / m if len(distances) == m else None)
    d_so, d_os = means
    if d_so is None and d_os is None:
        return d_so, d_os, None, "too_few_so_and_os"
    if d_so is None:
        return d_so, d_os, None, "too_few_so"
    if d_os is None:
        return d_so, d_os, None, "too_few_os"
    if d_so + d_os == 0:
        return d_so, d_os, None, "zero_distance"
    return d_so, d_os, (d_os - d_so) / (d_os + d_so), None


def f0(margins):
    defined = [x for x in margins if x is not None and not math.isnan(x)]
    return sum(x <= 0 for x in defined) / len(defined) if defined else None


def ltm(margins, alpha):
    ordered = sorted(x for x in margins if x is not None and not math.isnan(x))
    if not ordered:
        return None
    at = alpha * (len(ordered) - 1)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    quantile = low + (high - low) * (at - math.floor(at))
    tail = [x for x in ordered if x <= quantile]
    return sum(tail) / len(tail)
