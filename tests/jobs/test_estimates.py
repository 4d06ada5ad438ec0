"""Labels that a model asked for judge it, each with the chance it had of being asked for; and they tell the classes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import iwes
from jobs import class_balance, estimates
from jobs.estimates import Estimates
from jobs.workplace import Workplace
from store import labels, pool, projects, rounds
from store.tables import Mode, Model, Project, RoundState
from tests.conftest import a_label, add_round, make_project, put_label


@pytest.fixture
def project(place: Workplace) -> Project:
    """Of 20 tasks, round 1, drawn by a model, asks for 1-4; 5 and 6 are its reserve. It calls each of them a 3."""
    project = make_project(place.store, tasks=20)
    add_round(place.store, project, 0, [10, 11], wanted=2)
    add_round(place.store, project, 1, [1, 2, 3, 4, 5, 6], wanted=4)
    with place.store.write() as session:
        round_ = rounds.by_number(session, project, 1)
        round_.model_version, round_.examined, round_.pool_size = "iwes-model-0", 18, 18
        for draw in round_.draws:
            draw.predicted = "3"
        seed = rounds.by_number(session, project, 0)
        seed.examined = seed.pool_size = 20
        session.add(Model(project_id=project.id, round_number=0, version="iwes-model-0", examples=2, metrics={}))
    return project


def told(place: Workplace, project: Project, **aims: float) -> Estimates:
    with place.store.read() as session:
        found = estimates.of_project(session, projects.by_id(session, project.id), **aims)
    json.dumps(found.as_dict(), allow_nan=False)
    return found


def share(found: Estimates, name: str) -> iwes.Estimate:
    return next(share.estimate for share in found.balance if share.class_name == name)


def test_a_project_without_rounds_has_nothing_to_tell(place: Workplace) -> None:
    found = told(place, make_project(place.store, tasks=3))
    assert (found.tasks, found.labelled, found.curve, found.balance, found.recall) == (3, 0, (), (), ())
    assert (found.judged, found.labels_needed, found.advice) == (None, None, None)
    assert found.said == "no model yet: the first is trained once the seed is labelled"


def test_the_seed_tells_of_classes_but_judges_no_model(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 10, a_label(10))
    found = told(place, project)
    assert found.curve == ()
    assert found.said == "iwes-model-0 has no labels of its own yet: those of the round it draws will judge it"
    assert share(found, "3").value > share(found, "8").value == 0.0


def test_right_and_wrong_answers_count_by_one_over_their_chance(place: Workplace, project: Project) -> None:
    with place.store.write() as session:
        rounds.by_number(session, project, 1).draws[0].inclusion = 0.1
    put_label(place.store, project, 1, a_label(1, "8"))
    put_label(place.store, project, 2, a_label(2, "3"))
    found = told(place, project)
    assert found.judged is not None
    assert found.judged.estimate.value == pytest.approx(2 / (10 + 2))
    assert (found.judged.model_version, found.judged.trained_on, found.judged.rest) == ("iwes-model-0", 2, 18)
    assert (found.judged.response.answered, found.judged.response.missing) == (2, 2)
    assert found.said == "iwes-model-0, by round 1, with 2 of 4 labels so far; it is the model in use"
    assert found.judged.worth <= 2, "without the model's help no label is worth more than one drawn by lot"


def foresee(
    place: Workplace,
    project: Project,
    expected: dict[str, float],
    beliefs: list[list[float]],
    sure: float | None = None,
) -> None:
    """The model that drew round 1 expected this of all tasks, and of those it asked for, in their order."""
    with place.store.write() as session:
        round_ = rounds.by_number(session, project, 1)
        round_.expected = {"tasks": 18, "classes": list(expected), "shares": list(expected.values())}
        if sure is not None:
            round_.expected["sure"] = sure
        for draw, row in zip(round_.draws, beliefs, strict=False):
            draw.beliefs = np.array(row, "<f4").tobytes()


def test_what_the_model_expects_of_the_rest_is_corrected_by_its_labels(place: Workplace, project: Project) -> None:
    """By hand: of 18 tasks left the model expects a quarter to be of class 8; of the four it asked for, each with the
    chance ½, it expected one in ten, and one in four is. So 0.25 + 0.15 of the 18, and none of the two known threes."""
    for task in (10, 11, 1, 2, 3):
        put_label(place.store, project, task, a_label(task))
    put_label(place.store, project, 4, a_label(4, "8"))
    alone = share(told(place, project), "8")
    foresee(place, project, {"8": 0.25, "3": 0.75}, [[0.1, 0.9]] * 4)
    helped = share(told(place, project), "8")
    seed, batch = 0.0, 18 / 20 * (0.25 + 0.15)
    trust = 2 / (20 * 18), class_balance.HELP * 4 / (18 * 14)
    assert helped.value == pytest.approx((trust[0] * seed + trust[1] * batch) / sum(trust), rel=1e-6)
    assert helped.value != pytest.approx(alone.value)


def test_how_sure_the_model_is_of_the_rest_is_corrected_by_its_labels(place: Workplace, project: Project) -> None:
    """By hand: it is right as often as it is sure, 0.6 on the mean of 18 tasks, and of the four it asked for it was
    sure by 0.9, 0.8, 0.7 and 0.6 and right about three: 0 more than that, so 0.6 it is."""
    for task in (1, 2, 3, 4):
        put_label(place.store, project, task, a_label(task, "8" if task == 4 else "3"))
    alone = told(place, project).judged
    beliefs = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]]
    foresee(place, project, {"8": 0.25, "3": 0.75}, beliefs)
    assert told(place, project).judged == alone, "a round of long ago does not say how sure the model was"
    foresee(place, project, {"8": 0.25, "3": 0.75}, beliefs, sure=0.6)
    helped = told(place, project).judged
    assert alone is not None
    assert helped is not None
    assert alone.estimate.value == pytest.approx(0.75)
    assert helped.estimate.value == pytest.approx(0.6, abs=1e-6)
    assert helped.response == alone.response


def test_what_the_model_expects_of_tasks_that_are_skipped_is_no_merit_of_others(
    place: Workplace, project: Project
) -> None:
    """By hand: it is sure by 0.6 on the mean of 18 tasks, and by 0.75 of the four it asked for, one of which nobody can
    answer; of the other three it is right about two. So 0.15 less than two in three. The same of the classes: a third
    of the answered ones is of class 8, and it expects 0.05 less of all than of the four."""
    for task in (10, 11):
        put_label(place.store, project, task, a_label(task))
    for task, class_name in ((1, "3"), (2, "3"), (3, "8"), (4, None)):
        put_label(place.store, project, task, a_label(task, class_name))
    foresee(place, project, {"8": 0.25, "3": 0.75}, [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]], sure=0.6)
    found = told(place, project)
    assert found.judged is not None
    assert found.judged.estimate.value == pytest.approx(2 / 3 + 0.6 - 0.75, abs=1e-6)
    seed, batch = 0.0, 18 / 20 * (1 / 3 + 0.25 - 0.3)
    trust = 2 / (20 * 18), class_balance.HELP * 3 / (18 * 15)
    assert share(found, "8").value == pytest.approx((trust[0] * seed + trust[1] * batch) / sum(trust), rel=1e-6)


def test_a_class_that_is_new_since_was_not_foreseen(place: Workplace, project: Project) -> None:
    for task in (1, 2, 3, 4):
        put_label(place.store, project, task, a_label(task))
    foresee(place, project, {"3": 0.9, "gone": 0.1}, [[0.9, 0.1]] * 4)
    found = told(place, project)
    assert share(found, "8").value == 0.0
    assert share(found, "3").value > 0.9


def test_where_it_is_not_known_what_the_model_said_of_a_task_the_labels_speak_alone(
    place: Workplace, project: Project
) -> None:
    for task in (1, 2, 3, 4):
        put_label(place.store, project, task, a_label(task, "8" if task == 4 else "3"))
    alone = told(place, project)
    foresee(place, project, {"8": 0.25, "3": 0.75}, [[0.1, 0.9]] * 3, sure=0.75)
    found = told(place, project)
    assert (found.balance, found.judged) == (alone.balance, alone.judged)


def test_labels_of_the_reserve_and_manual_ones_judge_nothing(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 1, a_label(1, "3"))
    before = told(place, project)
    put_label(place.store, project, 5, a_label(5, "8"))
    put_label(place.store, project, 20, a_label(20, "8"))
    found = told(place, project)
    assert found.judged == before.judged
    assert found.labelled == 3
    assert [one.labels for one in found.recall if one.labels] == [1]


def test_a_skip_is_told_and_widens_the_interval(place: Workplace, project: Project) -> None:
    for n in (2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3"))
    waiting = told(place, project)
    put_label(place.store, project, 1, a_label(1, None))
    found = told(place, project)
    assert found.judged is not None
    assert (found.judged.response.skipped, found.judged.response.missing, found.skipped) == (1, 1, 1)
    assert str(found.judged).startswith("100% (")
    assert "1 labels missing" in str(found.judged)
    assert waiting.judged is not None
    assert found.judged.estimate == waiting.judged.estimate
    put_label(place.store, project, 1, a_label(2_000, "3"))
    answered = told(place, project)
    assert answered.judged is not None
    assert answered.judged.estimate.low > found.judged.estimate.low
    assert (answered.skipped, answered.judged.response.skipped) == (0, 0)


def test_tasks_that_are_gone_or_set_aside_are_no_part_of_it(place: Workplace, project: Project) -> None:
    for n in (1, 2, 3, 4):
        put_label(place.store, project, n, a_label(n, "8" if n < 3 else "3"))
    with place.store.write() as session:
        pool.forget(session, project, [1])
        pool.set_aside(session, pool.by_studio_id(session, project, [2])[2].id, "unreadable")
    found = told(place, project)
    assert found.judged is not None
    assert (found.tasks, found.labelled, found.judged.estimate.value) == (18, 2, 1.0)
    assert (found.judged.response.lost, found.judged.response.missing) == (2, 2)
    assert share(found, "8").low == 0.0


def test_several_annotations_of_a_task_are_one_answer(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 1, a_label(1, "3"))
    put_label(place.store, project, 1, a_label(2, "8", minutes=1))
    found = told(place, project)
    assert (found.labelled, found.judged and found.judged.estimate.value) == (1, 0.0)
    put_label(place.store, project, 1, a_label(3, "3", ground_truth=True))
    found = told(place, project)
    assert (found.labelled, found.judged and found.judged.estimate.value) == (1, 1.0)


def test_a_label_of_a_class_that_is_no_more_is_missing(place: Workplace, project: Project) -> None:
    put_label(place.store, project, 1, a_label(1, "3"))
    put_label(place.store, project, 2, a_label(2, "ten"))
    found = told(place, project)
    assert found.judged is not None
    assert (found.labelled, found.judged.response.answered, found.judged.response.missing) == (1, 1, 3)


def test_advice_looks_at_closed_rounds_alone(place: Workplace, project: Project) -> None:
    for n in (1, 2, 3):
        put_label(place.store, project, n, a_label(n, "3"))
    assert told(place, project).advice is None
    put_label(place.store, project, 4, a_label(4, "3"))
    found = told(place, project, target=0.05)
    assert found.advice is not None
    assert found.advice.stop
    assert "the target, 5 %, is reached" in found.advice.reason
    assert not told(place, project, target=0.99).advice.stop  # type: ignore[union-attr]


def test_a_model_without_labels_of_its_own_is_told_from_the_one_that_is_judged(
    place: Workplace, project: Project
) -> None:
    for n in (1, 2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3"))
    with place.store.write() as session:
        round_ = rounds.by_number(session, project, 1)
        assert round_.state == RoundState.CLOSED
        newer = Model(version="iwes-model-1", examples=6, metrics={})
        rounds.trained(session, project, round_, newer)
    found = told(place, project)
    assert (found.current_model, found.judged and found.judged.model_version) == ("iwes-model-1", "iwes-model-0")
    assert found.said.endswith("; iwes-model-1, in use now, has no labels of its own yet")


def test_labels_needed_never_exceed_what_is_left(place: Workplace, project: Project) -> None:
    for n in (1, 2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3" if n < 3 else "8"))
    assert told(place, project).labels_needed == 18 - 4
    assert told(place, project, half_width=0.45).labels_needed == 0


@pytest.mark.parametrize("aims", [{"half_width": 0.0}, {"half_width": 1.0}, {"target": 95.0}, {"target": float("nan")}])
def test_what_is_nothing_to_aim_for_is_refused(place: Workplace, project: Project, aims: dict[str, float]) -> None:
    with pytest.raises(iwes.BadArgument, match=next(iter(aims))):
        told(place, project, **aims)


def test_a_wholly_answered_pool_leaves_nothing_uncertain(place: Workplace) -> None:
    project = make_project(place.store, tasks=4)
    add_round(place.store, project, 0, [1, 2, 3, 4], wanted=4)
    with place.store.write() as session:
        seed = rounds.by_number(session, project, 0)
        seed.examined = seed.pool_size = 4
        for draw in seed.draws:
            draw.inclusion = 1.0
    for n in (1, 2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3" if n < 4 else "8"))
    found = share(told(place, project), "3")
    assert (found.low, found.value, found.high) == (0.75, 0.75, 0.75)


def test_labels_that_came_with_their_tasks_are_known_and_never_estimate(place: Workplace, project: Project) -> None:
    with place.store.write() as session:
        came = [a_label(n, "8", imported=True) for n in (12, 13, 14)]
        there = pool.by_studio_id(session, project, [12, 13, 14])
        labels.record(session, project, [(there[new.annotation_id].id, new) for new in came])
        projects.change_mode(session, project.id, Mode.AUTO)
    for n in (1, 2, 3, 4):
        put_label(place.store, project, n, a_label(n, "3"))
    found = told(place, project)
    assert found.labelled == 7
    assert share(found, "8").low == pytest.approx(3 / 20)
    assert share(found, "3").value == pytest.approx(17 / 20)
    put_label(place.store, project, 12, a_label(100, "3", minutes=1))
    again = told(place, project)
    assert (again.labelled, share(again, "3").value) == (7, pytest.approx(18 / 20))
