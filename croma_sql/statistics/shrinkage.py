"""Pull differences towards none, the more the less is known of them."""

import numpy as np
import scipy

from croma_sql.statistics.contrasts import Float

ROUNDS = 100
BEGIN = 0.1  # share of differences that are real, before anything is seen
RAREST = 1e-9


def shrink(difference: Float, variance: Float) -> Float:
    r"""Empirical Bayes: the expected true difference, if most are nothing and some are not.

    A difference is 0, or with a probability that all of them tell together, normal around 0 with a
    variance that they tell as well. It is seen with normal error of the given variance. Few real
    differences among many are thus kept nearly whole, while those that chance explains vanish; one
    normal distribution for all would have to choose. Fitted by expectation and maximisation.

    Parameters
    ----------
    difference, variance : (n,) float64, variances above 0

    References
    ----------
    I. M. Johnstone and B. W. Silverman, "Needles and straw in haystacks", 2004; M. Stephens, "False
    discovery rates: a new deal", 2017.

    Examples
    --------
    >>> seen = np.array([0.1, -0.2, 0.1, 0.0, -0.1, 0.2, 4.0])
    >>> shrink(seen, np.full(7, 0.04)).round(1).tolist()
    [0.0, -0.0, 0.0, 0.0, -0.0, 0.0, 4.0]
    """
    if not len(difference):
        return difference
    spread, share = float(np.mean(difference**2) / BEGIN + np.finfo(float).tiny), BEGIN
    for _ in range(ROUNDS):
        kept = spread / (spread + variance)
        evidence = 0.5 * (np.log(variance / (spread + variance)) + kept * difference**2 / variance)
        real = scipy.special.expit(np.log(share / (1 - share)) + evidence)
        found = float(real.sum())
        share = float(np.clip(found / len(real), RAREST, 1 - RAREST))
        spread = float(real @ (kept * (kept * difference**2 + variance))) / found
    shrunken: Float = real * kept * difference
    return shrunken
