"""The labelling config and what annotations say under it."""

from __future__ import annotations

from typing import Any

import pytest

from studio.errors import UnsupportedConfig
from studio.labels import ImageClasses, read_config

CHOICES = '<Choices name="label" toName="image">{}</Choices>'
TWO = '<Choice value="cat"/><Choice value="dog"/>'


def view(*tags: str) -> str:
    return f"<View>{''.join(tags)}</View>"


IMAGE = '<Image name="image" value="$picture"/>'


def test_the_control_the_field_and_the_classes_in_order_are_found() -> None:
    found = read_config(view('<Header value="?"/>', IMAGE, CHOICES.format(TWO + '<Choice value="x" alias="ant"/>')))
    assert found == ImageClasses("label", "image", "picture", ("cat", "dog", "ant"))


def test_a_control_that_cannot_be_learnt_is_passed_over_for_one_that_can() -> None:
    text = '<Text name="t" value="$t"/><Choices name="mood" toName="t"><Choice value="a"/><Choice value="b"/></Choices>'
    assert read_config(view(text, IMAGE, CHOICES.format(TWO))).control == "label"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("<View>", "not valid XML"),
        (view(IMAGE), "no control at all"),
        (
            view(IMAGE, '<RectangleLabels name="b" toName="image"><Label value="car"/></RectangleLabels>'),
            "<RectangleLabels>",
        ),
        (view('<Text name="image" value="$t"/>', CHOICES.format(TWO)), "not an Image"),
        (view('<Image name="image" value="http://x/y.png"/>', CHOICES.format(TWO)), "not a $field"),
        (view(IMAGE, CHOICES.format('<Choice value="cat"/>')), "fewer than two"),
        (view(IMAGE, f'<Choices name="label" toName="image" choice="multiple">{TWO}</Choices>'), "several choices"),
        (view(IMAGE, f'<Choices name="label" toName="image" perRegion="true">{TWO}</Choices>'), "per region"),
    ],
)
def test_a_config_without_a_supported_control_says_what_is_there_and_what_is_wanted(config: str, reason: str) -> None:
    with pytest.raises(UnsupportedConfig) as error:
        read_config(config)
    assert reason in str(error.value)
    assert "this backend learns image classification" in str(error.value)
    assert "\n" not in str(error.value)


LABELS = ImageClasses("label", "image", "picture", ("cat", "dog"))


def test_a_class_and_its_result_are_each_others_inverse() -> None:
    for name in LABELS.classes:
        assert LABELS.class_of(LABELS.result_of(name)) == (name, None)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ([], "says nothing"),
        ([{"from_name": "other", "value": {"choices": ["cat"]}}], "says nothing"),
        ([{"from_name": "label", "value": {"choices": []}}], "empty"),
        ([{"from_name": "label", "value": None}], "empty"),
        ([{"from_name": "label", "value": {"choices": ["cat", "dog"]}}], "2 choices"),
        ([{"from_name": "label", "value": {"choices": ["cow"]}}], "unknown class 'cow'"),
        (["nonsense", 3], "says nothing"),
    ],
)
def test_an_annotation_that_names_no_class_says_why(result: list[Any], reason: str) -> None:
    class_name, problem = LABELS.class_of(result)
    assert class_name is None
    assert problem is not None
    assert reason in problem
