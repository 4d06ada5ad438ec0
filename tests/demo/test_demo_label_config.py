"""The labelling config the demo makes from its classes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from backend.demo.label_config import label_config

DIGITS = [str(digit) for digit in range(10)]


def test_the_repository_shows_the_config_of_the_ten_digits() -> None:
    assert (Path(__file__).parents[2] / "label_config.xml").read_text() == label_config(DIGITS)


def test_classes_with_signs_of_xml_stay_what_they_are() -> None:
    classes = ['a "b" <c>', "R&D"]
    choices = ElementTree.fromstring(label_config(classes)).iter("Choice")  # noqa: S314 - our own text
    assert [choice.attrib for choice in choices] == [{"value": name} for name in classes]
