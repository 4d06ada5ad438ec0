"""When to stop labelling: advice that stays valid although one looks at the estimates after every round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iwes.errors import BadArgument
from iwes.estimate import Estimate
from iwes.interval import two_sided, wilson


@dataclass(frozen=True)
class Advice:
    """Whether to stop, why, and the interval of the latest round that the advice rests on."""

    stop: bool
    reason: str
    estimate: Estimate  # its interval widened so that all rounds' intervals hold together


def round_confidence(number: int, *, confidence: float = 0.95) -> float:
    """The confidence that round `number` (from 1) must have for all rounds to hold together with `confidence`.

    Round r may err with chance α/(r(r + 1)). These add up to α over any number of rounds, so that by the union bound
    the intervals of all rounds are right at once with probability 1 − α, whenever one stops: a confidence
    sequence in the sense of Darling and Robbins, "Confidence sequences for mean, variance, and median", 1967. The
    rounds may judge different models.
    """
    if number < 1:
        raise BadArgument(f"number is {number}: rounds count from 1")
    if not 0.0 < confidence < 1.0:
        raise BadArgument(f"confidence is {confidence}: expected a share between 0 and 1, such as 0.95")
    return 1.0 - (1.0 - confidence) / (number * (number + 1))


def stopping_advice(
    estimates: Sequence[Estimate],
    *,
    target: float | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
) -> Advice:
    """Whether the latest of the rounds' `estimates`, in order from the first round looked at, is good enough.

    Stop once the lower bound of the latest estimate reaches `target`, or half of its interval's width is at
    most `half_width`; either may be left out. Over a whole project the chance of ever stopping at a model whose
    true value lies below `target` is at most 1 − `confidence`, as far as each round's interval holds.
    """
    if not estimates:
        raise BadArgument("estimates is empty: close a round first")
    if target is None and half_width is None:
        raise BadArgument("give target, half_width or both: there is nothing to stop for")
    number = len(estimates)
    latest = estimates[-1].at(round_confidence(number, confidence=confidence))
    width = (latest.high - latest.low) / 2.0
    if target is not None and latest.low >= target:
        return Advice(
            True,
            f"round {number}: surely at least {_down(latest.low)}; the target, {_given(target)}, is reached",
            latest,
        )
    if half_width is not None and width <= half_width:
        return Advice(True, f"round {number}: known to within ±{_up(width)}; wanted was ±{_given(half_width)}", latest)
    wants = []
    if target is not None:
        wants.append(f"surely at least {_down(latest.low)}, the target is {_given(target)}")
    if half_width is not None:
        wants.append(f"known to within ±{_up(width)}, wanted is ±{_given(half_width)}")
    return Advice(False, f"round {number}: " + "; ".join(wants), latest)


def labels_needed(estimate: Estimate, answered: int, half_width: float, *, confidence: float = 0.95) -> int:
    """How many more labels of the same draw would make half of the interval's width at most `half_width`.

    `answered` labels gave the estimate of a share. More of them are taken to be worth as much each, and the share to
    stay what it is. As a draw that takes in a good part of its pool knows more than that, it is rather too many.
    """
    if answered < 1 or not 0.0 < half_width < 1.0 or estimate.limits != (0.0, 1.0):
        raise BadArgument(f"answered is {answered}, half_width {half_width}: expected 1 or more, a width, and a share")
    if estimate.standard_error <= 0.0:
        return 0
    few, enough = -1, 0
    while not _is_narrow(estimate, (answered + enough) / answered, half_width, confidence):
        few, enough = enough, max(1, 2 * enough)
    while enough - few > 1:
        middle = (few + enough) // 2
        if _is_narrow(estimate, (answered + middle) / answered, half_width, confidence):
            enough = middle
        else:
            few = middle
    return enough


def _given(share: float) -> str:
    return f"{100 * share:g} %"


def _down(share: float) -> str:
    """Never more than it is, lest it look as if a target were reached that is not."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def _up(width: float) -> str:
    """Never less than it is, likewise."""
    return f"{math.ceil(1000 * width - 1e-9) / 10:g} %"


def _is_narrow(estimate: Estimate, times: float, half_width: float, confidence: float) -> bool:
    """Whether the interval would be, with so many times the labels."""
    quantile = two_sided(confidence, times * estimate.effective_size - 1.0)
    low = wilson(estimate.value, times * estimate.below.labels, quantile)[0]
    high = wilson(estimate.value, times * estimate.above.labels, quantile)[1]
    return high - low <= 2.0 * half_width
