"""Accuracy and time of a head trained on a thousand photos described by a pre-trained backbone."""

from __future__ import annotations

from statistics import mean, median, stdev

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning import described
from benchmarks.learning.clock import seconds
from benchmarks.learning.datasets import Labelled
from benchmarks.learning.options import Options
from benchmarks.learning.report import Goal, Report
from models.learner import Fitted

LABELS = 1_000


def run(options: Options, report: Report) -> None:
    if options.photos is None:
        report.remark(described.NO_PHOTOS)
        return
    data, learner, rows = described.photos(options.photos, options, report)
    labels = min(LABELS, data.train * 3 // 4)
    ours, peers = _Results(), _Results()
    for seed in range(options.seeds):
        places = np.random.default_rng(seed).choice(data.train, labels, replace=False)
        training_set = described.examples(rows, data, places)
        fits: list[Fitted] = []
        took = seconds(lambda: fits.append(learner.fit(training_set, seed=seed)))  # noqa: B023 - called at once
        ours.add(took, described.test_accuracy(fits[0], rows, data))
        peer = _logistic_regression(rows, data, places)
        if peer is not None:
            peers.add(*peer)
        report.progress(f"seed {seed}: {ours.accuracies[-1]:.1%} after {took:.1f} s of training")
    report.remark("± is the standard deviation over seeds, all tested on the same photos.")
    what = f"head on {labels:,} photos, tested on {len(data) - data.train}, {options.seeds} seeds"
    report.row(
        f"{what}: accuracy",
        ours.accuracy(),
        peers.accuracy(),
        ratio=ours.ratio(peers),
        goal=Goal(least=72, unit="{:.0f} %"),
        judged=100 * mean(ours.accuracies),
    )
    report.row(
        f"{what}: training",
        ours.time(),
        peers.time(),
        goal=Goal(below=10, unit="{:.0f} s"),
        judged=median(ours.seconds),
    )


class _Results:
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.accuracies: list[float] = []

    def add(self, took: float, accuracy: float) -> None:
        self.seconds.append(took)
        self.accuracies.append(accuracy)

    def accuracy(self) -> str:
        if not self.accuracies:
            return "scikit-learn is not installed"
        spread = f" ± {stdev(self.accuracies):.1%}" if len(self.accuracies) > 1 else ""
        return f"{mean(self.accuracies):.1%}{spread}"

    def time(self) -> str:
        return f"{median(self.seconds):.2f} s" if self.seconds else ""

    def ratio(self, peer: _Results) -> float | None:
        return mean(self.accuracies) / mean(peer.accuracies) if peer.accuracies else None


def _logistic_regression(
    rows: NDArray[np.float32], data: Labelled, places: NDArray[np.int64]
) -> tuple[float, float] | None:
    """Seconds and accuracy of scikit-learn's, on one thread as ours; None where it is not installed."""
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from threadpoolctl import threadpool_limits
    except ImportError:
        return None
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    with threadpool_limits(1):
        took = seconds(lambda: model.fit(rows[places], data.labels[places]))
    return took, float(model.score(rows[data.train :], data.labels[data.train :]))
