"""The probabilities with which IWeS asks for a label, as pure functions of what a model believes."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iwes.errors import BadArgument, BadLabels, BadProbabilities

Floats = NDArray[np.float64]
BLOCK = 1 << 16  # numbers looked at together: small enough for the cache, large enough to hide Python
TINY = np.finfo(np.float64).tiny


def entropy(probabilities: ArrayLike) -> Floats:
    """IWeS-ent: the entropy of each row divided by that of the uniform guess.

    `probabilities` has shape (n, classes), 2 classes or more, each row summing to 1.
    Returns shape (n,), in [0, 1]; 0 = certain, 1 = no idea, high = ask for it.
    """
    matrix = _as_matrix(probabilities, "probabilities")
    result = np.empty(len(matrix))
    for rows, block in checked_blocks(matrix, "probabilities"):
        logs = np.maximum(block, TINY)
        np.log(logs, out=logs)
        np.einsum("ij,ij->i", block, logs, out=result[rows])
    result /= -math.log(matrix.shape[1])
    return np.clip(result, 0.0, 1.0, out=result)


def margin(probabilities: ArrayLike) -> Floats:
    """IWeS-margin: how near the second-likeliest class of each row comes to the likeliest, 1 − (P₁ − P₂).

    `probabilities` as for `entropy`. Returns shape (n,), in [0, 1]; 0 = certain, 1 = torn between two classes.
    What the other classes get does not matter, so of many classes it asks less often for tasks that are like none.
    """
    return np.clip(1.0 - gap(probabilities), 0.0, 1.0)


def gap(probabilities: ArrayLike) -> Floats:
    """P₁ − P₂ of each row, shape (n,), exact where it is tiny; low = ask for it."""
    matrix = _as_matrix(probabilities, "probabilities")
    result = np.empty(len(matrix))
    for rows, block in checked_blocks(matrix, "probabilities"):
        pair = np.partition(block, -2, axis=1)[:, -2:]
        np.subtract(pair[:, 1], pair[:, 0], out=result[rows])
    return result


def loss(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """IWeS-loss: −P ln P of the probability P given to the known label.

    Shapes (n, classes) and (n,). Returns shape (n,), in [0, 1/e]; highest at P = 1/e, and 0 both where the
    model is certain of the label and where it rules the label out.
    """
    return -_surprise(probabilities, labels, "probabilities")


def disagreement(f_probabilities: ArrayLike, g_probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """IWeS-dis: how differently two models see the known label, |P_f ln P_f − P_g ln P_g|.

    Shapes (n, classes), (n, classes) and (n,). Returns shape (n,), in [0, 1/e]; symmetric in f and g.
    """
    f = _as_matrix(f_probabilities, "f_probabilities")
    g = _as_matrix(g_probabilities, "g_probabilities")
    if f.shape != g.shape:
        raise BadArgument(f"f_probabilities has shape {f.shape} but g_probabilities {g.shape}: pass the same tasks")
    return np.abs(_surprise(f, labels, "f_probabilities") - _surprise(g, labels, "g_probabilities"))


def binary_entropy(probabilities: ArrayLike) -> Floats:
    """IWeS-ent for multi-label tasks: the entropy in bits of "this class is present", one per image–class pair.

    `probabilities` has any shape, (images, classes) as a rule, each value in [0, 1] by itself.
    Returns the same shape, in [0, 1]; 1 where P = ½. Flatten it for `draw`: pair number i is image
    i // classes, class i % classes.
    """
    values = _as_floats(probabilities, "probabilities")
    flat = values.reshape(-1)
    result = np.empty(flat.shape)
    for start in range(0, flat.size, BLOCK):
        part = slice(start, start + BLOCK)
        present = flat[part].astype(np.float64)
        if not (present.min() >= 0.0 and present.max() <= 1.0):
            bad = start + int(np.flatnonzero(~((present >= 0.0) & (present <= 1.0)))[0])
            place = ", ".join(str(int(i)) for i in np.unravel_index(bad, values.shape))
            raise BadProbabilities(
                f"probabilities[{place}] is {flat[bad]}: every value must be between 0 and 1 "
                "(pass the sigmoid of each logit)"
            )
        absent = 1.0 - present
        result[part] = present * np.log2(np.maximum(present, TINY)) + absent * np.log2(np.maximum(absent, TINY))
    np.negative(result, out=result)
    return np.clip(result, 0.0, 1.0, out=result).reshape(values.shape)


def _surprise(probabilities: ArrayLike, labels: ArrayLike, name: str) -> Floats:
    """P ln P of the probability each row gives to its label, 0 at P = 0 and at P = 1."""
    matrix = _as_matrix(probabilities, name)
    classes = matrix.shape[1]
    label = np.asarray(labels)
    if label.shape != (len(matrix),):
        raise BadLabels(f"labels has shape {label.shape}, expected ({len(matrix)},): one class number per row")
    if label.size and not np.issubdtype(label.dtype, np.integer):
        raise BadLabels(f"labels has dtype {label.dtype}: pass class numbers from 0 to {classes - 1}")
    label = label.astype(np.int64)
    outside = np.flatnonzero((label < 0) | (label >= classes))
    if outside.size:
        raise BadLabels(f"labels[{outside[0]}] is {label[outside[0]]}: expected a class from 0 to {classes - 1}")
    for _ in checked_blocks(matrix, name):
        pass
    chosen = np.minimum(matrix[np.arange(len(matrix)), label].astype(np.float64), 1.0)
    return np.asarray(chosen * np.log(np.maximum(chosen, TINY)))


def _as_floats(values: ArrayLike, name: str) -> NDArray[np.floating]:
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise BadProbabilities(f"{name} has dtype {array.dtype}: pass an array of floats")
    return array


def _as_matrix(values: ArrayLike, name: str) -> NDArray[np.floating]:
    array = _as_floats(values, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise BadProbabilities(f"{name} has shape {array.shape}: expected (tasks, classes) with 2 classes or more")
    return array


def checked_blocks(probabilities: ArrayLike, name: str) -> Iterator[tuple[slice, Floats]]:
    """Cut (n, classes) into runs of rows in double precision, each checked to hold probabilities."""
    matrix = _as_matrix(probabilities, name)
    tolerance = 1e-2 if matrix.dtype.itemsize < 4 else 1e-3  # a half-precision softmax is this far off
    step = max(1, BLOCK // matrix.shape[1])
    ones = np.ones(matrix.shape[1])
    for start in range(0, len(matrix), step):
        rows = slice(start, min(start + step, len(matrix)))
        block = matrix[rows].astype(np.float64, copy=False)
        # Comparisons with NaN are false, so "not (good)" also catches NaN.
        total = block @ ones
        if not (block.min() >= 0.0 and np.abs(total - 1.0).max() <= tolerance):
            good = (block >= 0.0).all(axis=1) & (np.abs(total - 1.0) <= tolerance)
            bad = int(np.flatnonzero(~good)[0])
            fault = "has a negative or NaN value" if not (block[bad] >= 0.0).all() else f"sums to {total[bad]:.6g}"
            raise BadProbabilities(
                f"{name}: row {start + bad} {fault}: every row must be ≥ 0 and sum to 1 (pass the softmax, not logits)"
            )
        yield rows, block
