"""Confidence intervals for a weighted mean, from its variance and the number of labels behind it."""

import math
from functools import lru_cache
from statistics import NormalDist

from iwes.errors import BadArgument


def student_quantile(probability: float, degrees: float) -> float:
    """The Student t quantile by the Cornish–Fisher expansion about the normal one.

    Within 1 % of the truth at 97.5 % from 4 degrees of freedom on; degrees below 4 count as 4.
    """
    x = NormalDist().inv_cdf(probability)
    d = max(degrees, 4.0)
    first = (x**3 + x) / 4.0
    second = (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0
    third = (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0
    return x + first / d + second / d**2 + third / d**3


@lru_cache(maxsize=1024)
def two_sided(confidence: float, degrees: float) -> float:
    """The t quantile that leaves (1 − confidence)/2 on either side."""
    if not 0.0 < confidence < 1.0:
        raise BadArgument(f"confidence is {confidence}: expected a share between 0 and 1, such as 0.95")
    return student_quantile(0.5 + confidence / 2.0, degrees)


def wilson(mean: float, labels: float, quantile: float) -> tuple[float, float]:
    """The Wilson score interval of a mean in [0, 1] known as well as from `labels` plain labels.

    Stays within [0, 1] and keeps a positive width at 0 and at 1; a point where `labels` is infinite.
    """
    if math.isinf(labels):
        return mean, mean
    shrink = 1.0 + quantile**2 / labels
    centre = (mean + quantile**2 / (2.0 * labels)) / shrink
    half = quantile * math.sqrt(mean * (1.0 - mean) / labels + (quantile / (2.0 * labels)) ** 2) / shrink
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))
