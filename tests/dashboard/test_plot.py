"""Axes end and are marked at round numbers, and marks stand where their values say."""

from __future__ import annotations

import pytest

from backend.dashboard.plot import Axis, round_step


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        ([0, 425], 6, ["0", "100", "200", "300", "400", "500"]),
        ([0.57, 1.0], 5, ["0.5", "0.6", "0.7", "0.8", "0.9", "1"]),
        ([3, 3], 5, ["3", "4"]),
        ([0, 0], 4, ["0", "0.5"]),
    ],
)
def test_ticks_are_round_numbers_around_all_values(values: list[float], most: int, expected: list[str]) -> None:
    axis = Axis.over(values, 0, 100, most=most, text=lambda value: f"{value:.6g}")
    assert [tick.text for tick in axis.ticks] == expected
    assert axis.low <= min(values)
    assert axis.high >= max(values)


def test_an_axis_may_end_at_its_last_value() -> None:
    axis = Axis.over([1.0, 2.06], 0, 100, most=5, text=lambda value: f"{value:g}", whole=False)
    assert [tick.text for tick in axis.ticks] == ["1", "1.5", "2"]
    assert (axis.high, axis.at(2.06)) == (2.06, 100)


def test_a_mark_stands_where_its_value_says_also_on_an_axis_that_points_up() -> None:
    axis = Axis.over([0, 10], 300, 20, most=5, text=str)
    assert (axis.at(0), axis.at(5), axis.at(10)) == (300, 160, 20)


@pytest.mark.parametrize(("span", "step"), [(10, 2), (11, 5), (0.43, 0.1), (1000, 200)])
def test_a_step_is_one_two_or_five_times_a_power_of_ten(span: float, step: float) -> None:
    assert round_step(span, 5) == pytest.approx(step)
