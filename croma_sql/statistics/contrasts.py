r"""How a part of some rows differs from all of them, where rows of one group resemble each other.

Let :math:`x_i` say whether row i is in the part. The difference is a score
:math:`U = \sum_g U_g`, to which every group contributes
:math:`U_g = \sum_{i \in g} (x_i - c) e_i` with residuals e. Its variance is the larger of two:

- **robust**, :math:`\sum_g U_g^2`: whatever the correlation within groups (Liang and Zeger 1986).
- **model**: rows of one variance and one intraclass correlation, that of all rows. Where a few
  contributions happen to be alike, as when no row of a rare value is in the tail, the robust
  variance is far too small, and this one is not.

Nothing that one slide does is significant. With residuals around the hypothesis (the generalised
score test of Boos 1992, in `croma_sql.statistics.odds`), the score of a part that lives in K groups
is at most about :math:`\sqrt K` standard deviations. With residuals around what is seen
(`differences`), the robust variance is known with K - 1 degrees of freedom, which say it, and the
model's with those of all groups, so that what befell a dozen slides of hundreds is told from
chance. That takes groups inside and outside to vary alike, apart from their means: if slides of a
part vary twice as much, one-sided p-values of 0.05 and 0.01 are those of 0.07 and 0.02.

Both variances follow from sums over groups of products: no statistic needs a second look at the
rows.

References
----------
K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear models", 1986.
D. D. Boos, "On generalized score tests", 1992.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Float = NDArray[np.float64]
LEAST_FREEDOM = 1e-6  # of one group: nothing is unlikely then


@dataclass(frozen=True, slots=True)
class Sums:
    """Of cells with n_g rows of sum y_g in group g; arrays of one shape.

    n, groups, y : rows, groups that hold any, sum
    yy, yn, nn : sums over groups of y_g y_g, y_g n_g, n_g n_g
    """

    n: Float
    groups: Float
    y: Float
    yy: Float
    yn: Float
    nn: Float

    @classmethod
    def of(cls, own: Float) -> "Sums":
        """Name the columns (..., 6) that `croma_sql.udfs.statistics.slices` fills."""
        return cls(*np.moveaxis(own, -1, 0))


@dataclass(frozen=True, slots=True)
class Part:
    """Cells, what is around each of them, and sums over groups of products of the two.

    yy, yn, ny, nn : of y_g Y_g, y_g N_g, n_g Y_g, n_g N_g, capitals being the whole's
    """

    own: Sums
    whole: Sums
    yy: Float
    yn: Float
    ny: Float
    nn: Float

    @classmethod
    def of(cls, own: Float, cross: Float, whole: Float) -> "Part":
        """Name the columns (..., 6), (..., 4) and (..., 6) that `slices.sums` fills."""
        return cls(Sums.of(own), Sums.of(whole), *np.moveaxis(cross, -1, 0))

    def robust_variance(self, share: Any, inside: Any, outside: Any) -> Float:
        """Sum of squared contributions of groups, with residuals from means inside and outside."""
        c, b = share, share * outside
        a = inside - share * (inside - outside)  # a group contributes y_g - a n_g - c Y_g + b N_g
        own, whole = self.own, self.whole
        squares = own.yy + a * a * own.nn + c * c * whole.yy + b * b * whole.nn
        products = b * self.yn - a * own.yn - c * self.yy
        others = a * c * self.ny - a * b * self.nn - c * b * whole.yn
        variance: Float = np.maximum(squares + 2 * (products + others), 0.0)
        return variance

    def model_variance(self, inside: Any, outside: Any, correlation: float) -> Float:
        """Variance of the score if rows inside and outside the part have these variances."""
        n, rest = self.own.n, self.whole.n - self.own.n
        both = n * inside + rest * outside
        a, b = rest * outside * np.sqrt(inside), n * inside * np.sqrt(outside)
        within = both * n * inside * rest * outside
        between = (
            (a + b) ** 2 * self.own.nn - 2 * (a + b) * b * self.nn + b * b * self.whole.nn
        )  # of weights a inside and -b outside
        shared = (1 - correlation) * within + correlation * between
        variance: Float = np.divide(shared, both**2, out=np.zeros_like(shared), where=both > 0)
        return variance


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of each part minus that of the whole, with what is known of its error.

    variance, freedom : of the estimate, and the degrees of freedom of Student's t
    """

    mean: Float
    variance: Float
    freedom: Float

    def chance(self) -> Float:
        """How likely a part so low or lower is, if there is no difference."""
        chance: Float = scipy.special.stdtr(self.freedom, self.mean / np.sqrt(self.variance))
        return chance


@dataclass(frozen=True, slots=True)
class Common:
    """What rows have in common wherever they are, as all of them tell.

    variance, alike : of one row, and the intraclass correlation
    freedom : degrees of freedom with which these are known
    """

    variance: float
    alike: float
    freedom: float

    @classmethod
    def of(cls, y: Float, starts: NDArray[np.int64]) -> "Common":
        """Estimate from rows sorted by group, of which each of (groups + 1,) starts tells one."""
        variance = float(y.var()) if np.ptp(y) else 0.0
        sizes = np.diff(starts).astype(np.float64)
        freedom = len(y) ** 2 / float(sizes @ sizes) - 1
        return cls(variance, intraclass_correlation(y, starts), max(freedom, LEAST_FREEDOM))


def differences(part: Part, common: Common) -> Difference:
    """Compare means of any quantity.

    The variance is the larger of robust and model, around the means that are seen. Degrees of
    freedom count groups as far as they are equally large, (sum n_g)^2 / sum n_g^2, minus one. Those
    of the model are of all groups; those of what the robust variance has beyond it, of the part or
    of the rest, whichever has fewer. They are combined as Satterthwaite does.
    """
    own, whole = part.own, part.whole
    rest, share = whole.n - own.n, own.n / whole.n
    inside, outside = own.y / own.n, (whole.y - own.y) / rest
    groups = np.minimum(own.n**2 / own.nn, rest**2 / (whole.nn - 2 * part.nn + own.nn))
    few = np.maximum(groups - 1, LEAST_FREEDOM)
    robust = part.robust_variance(share, inside, outside) * (few + 1) / few
    model = part.model_variance(common.variance, common.variance, common.alike)
    variance = np.maximum(robust, model)
    beyond = variance - model
    freedom = variance**2 / (model**2 / common.freedom + beyond**2 / few)
    difference = (1 - share) * (inside - outside)
    return Difference(difference, variance / own.n**2, freedom)


def intraclass_correlation(y: Float, starts: NDArray[np.int64]) -> float:
    """How alike rows of one group are: one-way analysis of variance, unequal groups, in [0, 1].

    Parameters
    ----------
    y : (n,) sorted by group
    starts : (groups + 1,) where each group begins

    References
    ----------
    A. Donner, "A Review of Inference Procedures for the Intraclass Correlation Coefficient in the
    One-Way Random Effects Model", 1986.

    Examples
    --------
    >>> intraclass_correlation(np.array([1.0, 1.0, 5.0, 5.0]), np.array([0, 2, 4]))
    1.0
    """
    n, sizes = len(y), np.diff(starts)
    if len(sizes) < 2 or len(sizes) == n:
        return 0.0
    means = np.add.reduceat(y, starts[:-1]) / sizes
    between = float(sizes @ (means - y.mean()) ** 2) / (len(sizes) - 1)
    within = float(((y - np.repeat(means, sizes)) ** 2).sum()) / (n - len(sizes))
    size = (n - sizes @ sizes / n) / (len(sizes) - 1)
    total = between + (size - 1) * within
    return float(np.clip((between - within) / total, 0.0, 1.0)) if total > 0 else 0.0


def false_discovery_rate(p: Float) -> Float:
    """Smallest false discovery rate at which each test is a discovery.

    References
    ----------
    Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", 1995.

    Examples
    --------
    >>> false_discovery_rate(np.array([0.01, 0.02, 0.5])).round(3).tolist()
    [0.03, 0.03, 0.5]
    """
    q: Float = scipy.stats.false_discovery_control(p) if len(p) else p
    return q
