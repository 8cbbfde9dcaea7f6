"""RI, MaRI and k-NN balanced accuracy at every k, from the nearest neighbours of any type.

Definitions are those of `croma` 1.0.1: RI is the share of SO among SO and OS neighbours of all
samples, MaRI the same with weights exp(-d / tau), tau being the median distance of those
neighbours. Both are read at the k that best predicts the label.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_TAU = 0.2  # where no neighbour is SO or OS, and it changes nothing


def odd_up_to(k: int) -> NDArray[np.int64]:
    """List the k of PathoROB's and croma's protocol: 1, 3, .., 101."""
    return np.arange(1, k + 1, 2)


def robustness(
    nearest: Any, scope: Any, ks: NDArray[np.int64], *, accuracies: bool
) -> dict[str, Any]:
    """Compute curves over ``ks``; without ``accuracies`` the last k stands for the selected one."""
    there = nearest.neighbour >= 0
    who = np.where(there, nearest.neighbour, 0)
    same_label = scope.label[who] == scope.label[:, None]
    same_confounder = scope.confounder[who] == scope.confounder[:, None]
    so, os = there & same_label & ~same_confounder, there & ~same_label & same_confounder
    found: dict[str, Any] = {}
    selected = len(ks) - 1
    if accuracies:
        found["label_accuracy"] = balanced_accuracy(scope.label, who, there, ks)
        found["confounder_accuracy"] = balanced_accuracy(scope.confounder, who, there, ks)
        selected = int(found["label_accuracy"].argmax())
    k = int(ks[selected])
    typed = (so | os)[:, :k]
    tau = float(np.median(nearest.distance[:, :k][typed])) if typed.any() else NO_TAU
    weight = np.exp(-nearest.distance / tau)
    ri_each, ri = shares(so, os, np.ones_like(weight), ks)
    mari_each, mari = shares(so, os, weight, ks)
    found["ri_curve"] = ri
    if accuracies:  # else it is not the k of the others, nor tau
        found |= {"k": k, "tau": tau, "ri": ri[selected], "mari": mari[selected]}
        found["mari_curve"] = mari
        found |= {"ri_each": ri_each[:, selected], "mari_each": mari_each[:, selected]}
    return found


def shares(
    so: NDArray[np.bool_],
    os: NDArray[np.bool_],
    weight: NDArray[np.float64],
    ks: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of SO in the evidence within the first k, of each sample and of all together."""
    of_so = np.where(so, weight, 0.0).cumsum(axis=1)[:, ks - 1]
    of_os = np.where(os, weight, 0.0).cumsum(axis=1)[:, ks - 1]
    with np.errstate(invalid="ignore"):
        each = of_so / (of_so + of_os)
    evidence = (of_so + of_os).sum(axis=0)
    together = np.full(len(ks), 0.5)
    np.divide(of_so.sum(axis=0), evidence, out=together, where=evidence > 0)
    return each, together


def balanced_accuracy(
    code: NDArray[np.int32],
    who: NDArray[np.int32],
    there: NDArray[np.bool_],
    ks: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Mean recall of the classes under a majority vote of the first k neighbours.

    Ties go to the class that comes first in the scope, whose code is lowest.
    """
    most = np.zeros((len(code), len(ks)), np.int32)
    predicted = np.zeros((len(code), len(ks)), np.int32)
    classes = int(code.max()) + 1
    for some in range(classes):
        votes = ((code[who] == some) & there).cumsum(axis=1, dtype=np.int32)[:, ks - 1]
        wins = votes > most
        most[wins] = votes[wins]
        predicted[wins] = some
    usable = there[:, 0]
    right = (predicted == code[:, None])[usable]
    of_class = [right[code[usable] == some] for some in range(classes)]
    recalls: NDArray[np.float64] = np.mean(
        [members.mean(axis=0) for members in of_class if len(members)], axis=0
    )
    return recalls
