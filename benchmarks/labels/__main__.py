"""`python -m benchmarks.labels`: does the runs that are left, then writes tables, picture and page."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import results
from benchmarks.labels import defaults, figure, goals, tables, work
from benchmarks.labels.data import DATASETS, NoData
from benchmarks.labels.model import NoWeights
from benchmarks.labels.options import options
from benchmarks.labels.pools import POOLS
from benchmarks.labels.run import Run
from benchmarks.labels.summary import Summary, by_pool
from benchmarks.page import Part

NEEDED, CURVES, ESTIMATES = (f"figures/{name}.svg" for name in ("labels-needed", "labels", "labels-estimates"))
PAGE = Part("benchmarks.labels", "Benchmarks")


def main(words: Sequence[str] | None = None) -> int:
    asked = options(words)
    try:
        if asked.page_only:
            runs = results.load(asked.json, Run.from_dict)
        else:
            asked = work.here(asked)
            runs = work.finish(work.jobs(asked), asked)
    except (NoData, NoWeights) as error:
        print(error, file=sys.stderr)
        return 2
    if not asked.page_only:
        results.save(asked.json, runs)
    summaries = by_pool(runs, lambda pool: (list(DATASETS).index(pool[0]), list(POOLS).index(pool[1])))
    figure.draw_needed(summaries, asked.docs / NEEDED)
    figure.draw(summaries, asked.docs / CURVES)
    if tables.estimates(summaries, 0):
        figure.draw_estimates(summaries, asked.docs / ESTIMATES)
    written = _text(summaries)
    PAGE.write(asked.docs / "benchmarks.md", written)
    print(written)
    return 0


def _text(summaries: Sequence[Summary]) -> str:
    parts = [
        "### Labels needed\n\nFor the accuracy that random reaches with its last batch, as a part of what random "
        "needed; jackknife standard error over the seeds, ± ? where it is not reached without one of them. † looks at "
        "the answers of the whole pool: for labelled pools alone.",
        f"![Labels that each rule needs on every pool]({NEEDED})",
        tables.headline(summaries),
        f"![Learning curves on every pool]({CURVES})",
        *_section(
            f"### All {len(summaries)} pools together\n\nOf the rules that were run on each: labels needed, as above, "
            "from the pool with the fewest to that with the most; and points of accuracy above others with the same "
            "seed sets, mean over all rounds and pools.",
            tables.together(summaries),
        ),
        *_section(
            "### What was wanted, and what came of it\n\nOf the settings for the fewest labels, and of the default.",
            goals.goals(summaries),
        ),
        *_section(
            "### The product set otherwise\n\nPoints of accuracy above the default settings with the same seed sets, "
            "mean over all rounds and, where nothing else is said, all pools; and how far estimates are off, in "
            "points, with the default → with this.",
            defaults.defaults(summaries),
        ),
        *_section(
            "### What the labels say of the pool\n\nBy the default settings, from the labels of one round.\n\n"
            f"![How far estimates are off on every pool]({ESTIMATES})\n\n"
            "How far the estimated accuracy of the model on what is left is off (root mean square, points). Right is "
            "what annotators would say, also where they are wrong:",
            tables.estimates(summaries, 0),
        ),
        *_section(
            "And the class balance of what is left (half of the summed differences, points):",
            tables.estimates(summaries, 1),
        ),
        "### Each pool\n\nRight on the test set in % (mean ± standard error), and the mean difference over all rounds "
        "with the same seed sets (paired t-test; p is not corrected for the many rules compared).",
    ]
    for summary in summaries:
        parts += [f"<details>\n<summary>{tables.title(summary)}</summary>", tables.details(summary), "</details>"]
    return "\n\n".join(parts)


def _section(heading: str, found: str) -> list[str]:
    """None where the rules that it speaks of were not run."""
    return [heading, found] if found else []


if __name__ == "__main__":
    sys.exit(main())
