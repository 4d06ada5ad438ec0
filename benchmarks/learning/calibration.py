"""What calibration does to probabilities, to the draw's p, and to the accuracy that a number of labels brings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import iwes
from benchmarks.learning import datasets, described
from benchmarks.learning.datasets import Labelled
from benchmarks.learning.options import Options
from benchmarks.learning.report import Report
from benchmarks.learning.rounds import FLOOR, Game, classifier
from models.calibration import calibrate, expected_calibration_error
from models.device import choose
from models.feed import Picked
from models.images import decode
from models.network_learner import FullLearner
from models.plan import Plan

BARS = " ▁▂▃▄▅▆▇█"


def run(options: Options, report: Report) -> None:
    if options.photos is None:
        report.remark(described.NO_PHOTOS)
    else:
        data, learner, rows = described.photos(options.photos, options, report)
        _both(Game(learner, rows, data), options.sized(options.seeds, 2), options, report)
    _both(_digits(options), options.sized(min(options.seeds, 3), 2), options, report)


def _digits(options: Options) -> Game:
    data = datasets.mnist()
    if options.quick:
        data = datasets.some(data, train=300, test=100)
    images = np.stack([decode(data.content(number), size=28) for number in range(len(data))])
    recipe = Plan().recipe_for("small-cnn", way="full", pretrained=False)
    return Game(FullLearner("small-cnn", recipe, choose("cpu")), images, data)


def _both(game: Game, seeds: int, options: Options, report: Report) -> None:
    if options.quick:
        game = Game(game.learner, game.rows, game.data, seed_size=20, k=10, rounds=2)
    for labels in [20] if options.quick else [100, 200, 500]:
        _probabilities(game, labels, seeds, report)
    _efficiency(game, seeds, report)


def _probabilities(game: Game, labels: int, seeds: int, report: Report) -> None:
    """Labels at random; answers on the test set, and the p of all images that are left."""
    plain, scaled = _Answers(), _Answers()
    temperatures = []
    for seed in range(seeds):
        places = np.random.default_rng([seed, labels]).choice(game.data.train, labels, replace=False)
        training_set = described.examples(game.rows, game.data, places)
        fitted = game.learner.fit(training_set, seed=seed)
        temperatures.append(calibrate(game.learner, training_set, seed=seed))
        left = np.setdiff1d(np.arange(game.data.train), places)
        for answers, temperature in ((plain, 1.0), (scaled, temperatures[-1])):
            model = classifier(game, fitted, temperature)
            tested = np.arange(game.data.train, len(game.data))
            answers.add(
                model.probabilities(Picked(game.rows, tested)),
                game.data.labels[tested],
                iwes.entropy(model.probabilities(Picked(game.rows, left))),
            )
        report.progress(f"{game.data.name}, {labels} labels, seed {seed}: temperature {temperatures[-1]:.2f}")
    what = f"{game.data.name}, {labels} labels, {seeds} seeds"
    report.row(
        f"{what}: calibrated at T = {np.mean(temperatures):.2f}, next to not",
        scaled.errors(),
        plain.errors(),
        ratio=scaled.likelihood() / plain.likelihood(),
    )
    report.row(f"{what}: p of the images left, calibrated next to not", scaled.p(), plain.p())


class _Answers:
    """Of several seeds: calibration errors, negative log likelihoods, and the p of the pool."""

    def __init__(self) -> None:
        self.ece: list[float] = []
        self.nll: list[float] = []
        self.entropies: list[NDArray[np.float64]] = []

    def add(
        self, probabilities: NDArray[np.float64], labels: NDArray[np.int64], entropies: NDArray[np.float64]
    ) -> None:
        self.ece.append(expected_calibration_error(probabilities, labels))
        of_label = probabilities[np.arange(len(labels)), labels]
        self.nll.append(float(-np.log(np.maximum(of_label, np.finfo(float).tiny)).mean()))
        self.entropies.append(entropies)

    def likelihood(self) -> float:
        return float(np.mean(self.nll))

    def errors(self) -> str:
        return f"ECE {np.mean(self.ece):.3f}, NLL {self.likelihood():.3f}"

    def p(self) -> str:
        """Mean of p = max(floor, entropy), the share at the floor, and how many are in each tenth from 0 to 1."""
        scores = np.concatenate(self.entropies)
        counts = np.histogram(np.maximum(scores, FLOOR), bins=10, range=(0, 1))[0]
        bars = "".join(BARS[int(np.ceil(count / counts.max() * (len(BARS) - 1)))] for count in counts)
        return f"mean {np.maximum(scores, FLOOR).mean():.3f}, {(scores <= FLOOR).mean():.1%} at the floor, 0 ⟦{bars}⟧ 1"


def _efficiency(game: Game, seeds: int, report: Report) -> None:
    played: dict[bool, list[NDArray[np.float64]]] = {False: [], True: []}
    for seed in range(seeds):
        for calibrated in (False, True):
            played[calibrated].append(game.play(seed=seed, calibrated=calibrated))
            last = played[calibrated][-1][-1]
            report.progress(f"{game.data.name}, rounds of seed {seed}, calibrated {calibrated}: {last:.1%} in the end")
    plain, scaled = np.stack(played[False]), np.stack(played[True])
    for number in sorted({game.rounds // 2, game.rounds}):
        report.row(
            f"{game.data.name}, IWeS-ent rounds, {seeds} seeds: accuracy at {game.labels()[number]} labels, "
            f"calibrated next to not",
            _mean(scaled[:, number]),
            f"{_mean(plain[:, number])}; paired difference {_mean(scaled[:, number] - plain[:, number], sign='+')}",
        )
    _curve(game.data, game.labels(), plain, scaled, report)


def _curve(
    data: Labelled, labels: list[int], plain: NDArray[np.float64], scaled: NDArray[np.float64], report: Report
) -> None:
    lines = [f"| {data.name}: labels | not calibrated | calibrated | paired difference |", "|---|---|---|---|"]
    for number, count in enumerate(labels):
        without, with_, difference = plain[:, number], scaled[:, number], scaled[:, number] - plain[:, number]
        lines.append(f"| {count} | {_mean(without)} | {_mean(with_)} | {_mean(difference, sign='+')} |")
    difference = (scaled - plain)[:, 1:].mean(axis=1)
    lines.append(f"| all rounds | | | {_mean(difference, sign='+')} |")
    report.remark("\n".join(lines))


def _mean(values: NDArray[np.float64], sign: str = "") -> str:
    """With its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():{sign}.1%} ± {error:.1%}"
