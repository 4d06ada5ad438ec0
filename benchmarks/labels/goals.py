"""What was wanted of this comparison, next to what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.labels.rules import BADGE, DEFAULT, FEWEST, FEWEST_BY_ENTROPY, MARGIN, RULES
from benchmarks.labels.summary import HELPED, HOLD_OUT, MARGINS, PLAIN, Summary
from benchmarks.labels.tables import title
from benchmarks.page import table

RATIO = 0.55
TIMES = 3.0
RATIO_ON = ("fashion-mnist", "mnist-5000")
BETTER_ON = ("duplicates", "noise")


def goals(summaries: Sequence[Summary]) -> str:
    """Empty where neither the default nor a setting for the fewest labels was run."""
    ours = FEWEST, FEWEST_BY_ENTROPY, DEFAULT
    rules = [rule for rule in ours if any(RULES[rule] in summary.rules for summary in summaries)]
    if not rules:
        return ""
    rows = [
        [wanted, where, *(_cell(found.get(rule)) for rule in rules)]
        for wanted, where, found in _labels(summaries, rules)
    ]
    labels = table(["wanted", "pool", *(RULES[rule].title for rule in rules)], rows)
    rows = [[wanted, *(_cell(found.get(rule)) for rule in rules)] for wanted, found in _estimates(summaries, rules)]
    return labels + "\n\n" + table(["wanted", *(RULES[rule].title for rule in rules)], rows)


_Found = dict[str, tuple[str, bool]]
"""By rule: the figure, and whether it is as wanted."""


def _labels(summaries: Sequence[Summary], rules: Sequence[str]) -> Iterator[tuple[str, str, _Found]]:
    for summary in summaries:
        there = [rule for rule in rules if RULES[rule] in summary.rules]
        if summary.pool == "clean" and summary.data in RATIO_ON:
            ratios = {rule: summary.ratio(rule) for rule in there}
            found = {rule: (one.text(), one.value is not None and one.value <= RATIO) for rule, one in ratios.items()}
            yield f"labels ÷ random's ≤ {RATIO}", title(summary), found
        for other in (MARGIN, BADGE):
            if RULES[other] not in summary.rules or summary.pool not in ("clean", *BETTER_ON):
                continue
            points = {rule: summary.against(rule, other).points for rule in there}
            if summary.pool == "clean":
                wanted = f"points above {RULES[other].title} ≥ −1 s.e."
                found = {rule: (one.text("+.2f"), one.value >= -one.error) for rule, one in points.items()}
            else:
                wanted = f"points above {RULES[other].title} > 0"
                found = {rule: (one.text("+.2f"), one.value > 0) for rule, one in points.items()}
            yield wanted, title(summary), found


def _estimates(summaries: Sequence[Summary], rules: Sequence[str]) -> Iterator[tuple[str, _Found]]:
    """Over all pools, with the model's help, as the product estimates."""
    for number, what in enumerate(("accuracy", "class balance")):
        for other, least in ((PLAIN, TIMES), (MARGINS, TIMES), (HOLD_OUT, 1.0)):
            found = {}
            for rule in rules:
                errors = [summary.errors(rule) for summary in summaries if RULES[rule] in summary.rules]
                times = [one[other][number] / one[HELPED][number] for one in errors if other in one]
                times = [one for one in times if one == one]
                if times:
                    enough = sum(one >= least for one in times)
                    said = f"{min(times):.1f}–{max(times):.1f}×, {enough} of {len(times)} pools"
                    found[rule] = (said, enough == len(times))
            yield f"error of {what}: {other} ≥ {least:g}× as far off", found


def _cell(found: tuple[str, bool] | None) -> str:
    return "" if found is None else f"{found[0]} {'✓' if found[1] else '✗'}"
