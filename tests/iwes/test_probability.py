"""The probabilities: by hand, at the edges, for any input, and with an error that names the bad row."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from iwes import BadArgument, BadLabels, BadProbabilities, binary_entropy, disagreement, entropy, loss, margin

E = math.e


@st.composite
def beliefs(draw: st.DrawFn, classes: int | None = None) -> np.ndarray:
    shape = (draw(st.integers(1, 20)), classes or draw(st.integers(2, 12)))
    raw = draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 1)))
    raw[raw.sum(axis=1) < 1e-3, 0] = 1.0
    return raw / raw.sum(axis=1, keepdims=True)


def test_entropy_by_hand() -> None:
    rows = [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]
    expected = [1.0, 0.25 * 2 + 0.75 * math.log2(4 / 3), 0.0]
    np.testing.assert_allclose(entropy(rows), expected, rtol=1e-14)
    np.testing.assert_allclose(entropy([[0.5, 0.25, 0.25, 0.0]]), [1.5 / 2], rtol=1e-14)


def test_margin_by_hand() -> None:
    rows = [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]
    np.testing.assert_allclose(margin(rows), [1.0, 0.5, 0.0], rtol=1e-14)
    torn_between_two, lost = [0.45, 0.45, 0.1, 0.0], [0.4, 0.2, 0.2, 0.2]
    np.testing.assert_allclose(margin([torn_between_two, lost]), [1.0, 0.8], rtol=1e-14)
    assert np.diff(entropy([torn_between_two, lost])) > 0, "the entropy prefers the other of the two"


def test_loss_by_hand() -> None:
    rows = [[0.5, 0.5], [1 / E, 1 - 1 / E], [1.0, 0.0], [1.0, 0.0]]
    np.testing.assert_allclose(loss(rows, [1, 0, 0, 1]), [0.5 * math.log(2), 1 / E, 0.0, 0.0], atol=1e-15)


def test_disagreement_by_hand() -> None:
    f, g = [[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [1 - 1 / E, 1 / E]]
    expected = [abs(0.5 * math.log(0.5) - 0.25 * math.log(0.25)), 1 / E]
    np.testing.assert_allclose(disagreement(f, g, [0, 1]), expected, atol=1e-15)


def test_binary_entropy_by_hand() -> None:
    expected = [[1.0, 0.25 * 2 + 0.75 * math.log2(4 / 3)], [0.0, 0.0]]
    np.testing.assert_allclose(binary_entropy([[0.5, 0.25], [0.0, 1.0]]), expected, rtol=1e-14)


@given(beliefs())
def test_range_and_edges(p: np.ndarray) -> None:
    labels = p.argmin(axis=1)
    assert np.all((entropy(p) >= 0) & (entropy(p) <= 1))
    assert np.all((margin(p) >= 0) & (margin(p) <= 1))
    assert np.all((loss(p, labels) >= 0) & (loss(p, labels) <= 1 / E + 1e-15))
    assert np.all((binary_entropy(p) >= 0) & (binary_entropy(p) <= 1))


@given(beliefs(), st.randoms(use_true_random=False))
def test_order_of_classes_and_of_tasks_does_not_matter(p: np.ndarray, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))
    rows, columns = rng.permutation(len(p)), rng.permutation(p.shape[1])
    label = rng.integers(p.shape[1], size=len(p))
    np.testing.assert_allclose(entropy(p[:, columns]), entropy(p), atol=1e-12)
    np.testing.assert_array_equal(entropy(p[rows]), entropy(p)[rows])
    np.testing.assert_array_equal(margin(p[rows][:, columns]), margin(p)[rows])
    np.testing.assert_array_equal(loss(p[:, columns], np.argsort(columns)[label]), loss(p, label))
    np.testing.assert_array_equal(loss(p[rows], label[rows]), loss(p, label)[rows])


@given(beliefs(), st.data())
def test_disagreement_is_symmetric_and_zero_between_equals(p: np.ndarray, data: st.DataObject) -> None:
    label = np.array(data.draw(st.lists(st.integers(0, p.shape[1] - 1), min_size=len(p), max_size=len(p))))
    other = np.roll(p, 1, axis=1)
    np.testing.assert_array_equal(disagreement(p, other, label), disagreement(other, p, label))
    assert disagreement(p, p, label).tolist() == [0.0] * len(p)
    np.testing.assert_allclose(
        disagreement(p, other, label), abs(loss(p, label) - loss(other, label)), rtol=1e-12, atol=1e-15
    )


@given(beliefs(classes=2))
def test_entropy_of_two_classes_is_the_binary_entropy(p: np.ndarray) -> None:
    np.testing.assert_allclose(entropy(p), binary_entropy(p)[:, 0], atol=1e-12)
    np.testing.assert_allclose(binary_entropy(p)[:, 0], binary_entropy(p)[:, 1], atol=1e-12)


@given(beliefs())
def test_entropy_of_independent_guesses_adds_up(p: np.ndarray) -> None:
    """Scaling: for the product of a belief with itself the bits double and so does their maximum."""
    pairs = (p[:, :, None] * p[:, None, :]).reshape(len(p), -1)
    np.testing.assert_allclose(entropy(pairs), entropy(p), atol=1e-9)


@given(beliefs(), st.floats(0.01, 0.99))
def test_mixing_with_the_uniform_guess_never_lowers_the_entropy(p: np.ndarray, share: float) -> None:
    mixed = (1 - share) * p + share / p.shape[1]
    assert np.all(entropy(mixed) >= entropy(p) - 1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("classes", [2, 10, 1000, 20_000])
def test_any_float_type_and_any_number_of_classes(dtype: type, classes: int) -> None:
    logits = np.random.default_rng(0).normal(size=(40, classes)) * 2
    exact = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    p = exact.astype(dtype)
    tolerance = 1e-2 if dtype is np.float16 else 1e-5
    np.testing.assert_allclose(entropy(p), entropy(exact), atol=tolerance)
    np.testing.assert_allclose(margin(p), margin(exact), atol=tolerance)
    np.testing.assert_allclose(loss(p, np.zeros(40, int)), loss(exact, np.zeros(40, int)), atol=tolerance)
    one_hot = np.zeros((2, classes), dtype=dtype)
    one_hot[[0, 1], [0, classes - 1]] = 1.0
    assert entropy(one_hot).tolist() == margin(one_hot).tolist() == loss(one_hot, [0, 0]).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(entropy(np.full((2, classes), 1 / classes, dtype=dtype)), 1.0, atol=tolerance)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ([0.5, 0.6], "sums to 1.1"),
        ([1.2, -0.2], "has a negative or NaN value"),
        ([np.nan, 1.0], "has a negative or NaN value"),
        ([np.inf, 0.0], "sums to inf"),
        ([0.0, 0.0], "sums to 0"),
    ],
)
@pytest.mark.parametrize("place", [0, 49_999, 70_000])
def test_bad_row_is_named(row: list[float], fault: str, place: int) -> None:
    p = np.full((70_001, 2), 0.5)
    p[place] = row
    with pytest.raises(BadProbabilities, match=rf"probabilities: row {place} {fault}"):
        entropy(p)
    with pytest.raises(BadProbabilities, match=rf"row {place} {fault}"):
        margin(p)
    with pytest.raises(BadProbabilities, match=rf"row {place} "):
        loss(p, np.zeros(len(p), int))
    with pytest.raises(BadProbabilities, match=rf"g_probabilities: row {place} "):
        disagreement(np.full((70_001, 2), 0.5), p, np.zeros(len(p), int))


def test_bad_pair_of_a_multi_label_task_is_named() -> None:
    p = np.full((40_000, 3), 0.5)
    p[30_000, 2] = 1.5
    with pytest.raises(BadProbabilities, match=r"probabilities\[30000, 2\] is 1.5"):
        binary_entropy(p)


def test_bad_labels_and_shapes_are_named() -> None:
    p = np.full((3, 2), 0.5)
    with pytest.raises(BadLabels, match=r"labels\[1\] is 2: expected a class from 0 to 1"):
        loss(p, [0, 2, 0])
    with pytest.raises(BadLabels, match="one class number per row"):
        loss(p, [0, 1])
    with pytest.raises(BadLabels, match="class numbers"):
        loss(p, [0.0, 1.0, 1.0])
    with pytest.raises(BadProbabilities, match=r"\(3,\)"):
        entropy([0.2, 0.3, 0.5])
    for score in (entropy, margin):
        with pytest.raises(BadProbabilities, match="2 classes or more"):
            score(np.ones((3, 1)))
    with pytest.raises(BadArgument, match="pass the same tasks"):
        disagreement(p, np.full((3, 3), 1 / 3), [0, 1, 0])


def test_no_tasks_give_no_scores() -> None:
    assert entropy(np.empty((0, 5))).shape == margin(np.empty((0, 5))).shape == (0,)
    assert loss(np.empty((0, 5)), np.empty(0, int)).shape == (0,)
    assert binary_entropy(np.empty((0, 5))).shape == (0, 5)


@settings(max_examples=30)
@given(beliefs())
def test_inputs_are_left_alone(p: np.ndarray) -> None:
    before = p.copy()
    entropy(p), margin(p), loss(p, np.zeros(len(p), int)), binary_entropy(p)
    np.testing.assert_array_equal(p, before)
