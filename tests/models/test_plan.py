"""A plan says how a project trains, in words an admin uses, and is read back as it was stored."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from models import recipe as recipes
from models.plan import Plan, PlanError


def test_auto_trains_a_head_on_a_pretrained_backbone_and_everything_else_in_full() -> None:
    assert Plan().way_for(pretrained=True) == "head"
    assert Plan().way_for(pretrained=False) == "full"
    assert Plan(way="full").way_for(pretrained=True) == "full"
    assert Plan(way="head").way_for(pretrained=False) == "head"


def test_the_recipe_fits_what_is_trained() -> None:
    plan = Plan()
    assert plan.recipe_for("small-cnn", way="full", pretrained=False) == recipes.DEFAULT
    assert plan.recipe_for("resnet18", way="head", pretrained=True) == recipes.HEAD
    assert plan.recipe_for("resnet18", way="full", pretrained=True) == recipes.FINE_TUNE
    assert plan.recipe_for("resnet18", way="full", pretrained=False).threads is None


def test_the_papers_recipe_chooses_its_rate_on_the_seed_set() -> None:
    recipe = Plan(recipe="paper").recipe_for("vgg16", way="full", pretrained=True)
    assert (recipe.optimiser, recipe.batch, recipe.learning_rate) == ("sgd", 100, None)


def test_what_the_admin_says_changes_the_recipe() -> None:
    plan = Plan.said({"learning_rate": "0.02", "schedule": "cosine", "balance": True})
    recipe = plan.recipe_for("small-cnn", way="full", pretrained=False)
    assert (recipe.learning_rate, recipe.schedule, recipe.balance) == (0.02, "cosine", True)
    chosen = Plan.said({"learning_rate": "choose"}).recipe_for("small-cnn", way="full", pretrained=False)
    assert chosen.learning_rate is None


def test_a_stored_plan_comes_back_and_an_older_one_has_todays_defaults() -> None:
    plan = Plan(way="head", calibrate=True, learning_rate=0.5)
    assert Plan.from_dict(plan.as_dict()) == plan
    assert Plan.from_dict({}) == Plan()
    assert Plan.from_dict({"way": "full", "no longer known": 1}) == Plan(way="full")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"way": "half"}, "--train must be one of auto, full, head"),
        ({"recipe": "mine"}, "--recipe must be one of auto, paper"),
        ({"schedule": "linear"}, "--schedule must be one of constant, cosine"),
        ({"learning_rate": "fast"}, "--learning-rate is 'fast'; give a number, or 'choose'"),
        ({"learning_rate": "0"}, "--learning-rate must be a number between 0 and 1"),
        ({"learning_rate": "nan"}, "--learning-rate must be a number between 0 and 1"),
    ],
)
def test_a_plan_that_cannot_be_followed_names_the_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.said(options)


def test_reading_a_plan_needs_no_torch() -> None:
    code = "import sys, models.plan, models.plugins, models.networks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
