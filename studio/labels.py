"""The labelling config: which control is learnt, its classes in order, and the way between a class and a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from studio.errors import UnsupportedConfig

WANTED = (
    'this backend learns image classification: one <Choices choice="single"> that points at one <Image value="$field">'
)


@dataclass(frozen=True)
class ImageClasses:
    """A single choice among classes for an image."""

    control: str
    target: str
    field: str
    classes: tuple[str, ...]

    def class_of(self, result: Sequence[Any]) -> tuple[str | None, str | None]:
        """The class an annotation's result names, or None and the reason why it names none."""
        regions = [r for r in result if isinstance(r, dict) and r.get("from_name") == self.control]
        if not regions:
            return None, f"the annotation says nothing for <Choices name={self.control!r}>"
        value = regions[0].get("value")
        choices = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(choices, list) or not choices:
            return None, "the annotation's choice is empty"
        if len(choices) > 1:
            return None, f"the annotation holds {len(choices)} choices where one is expected"
        if choices[0] not in self.classes:
            return None, f"unknown class {str(choices[0])[:80]!r}: it is not in the labelling config"
        return str(choices[0]), None

    def result_of(self, class_name: str) -> list[dict[str, Any]]:
        """The result that names a class, as the editor would write it."""
        return [
            {
                "from_name": self.control,
                "to_name": self.target,
                "type": "choices",
                "value": {"choices": [class_name]},
            }
        ]


def read_config(xml: str) -> ImageClasses:
    """The first control of a labelling config that this backend can learn; else an error that lists what is there."""
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - from the connected server; expat bounds entity expansion
    except ElementTree.ParseError as error:
        raise UnsupportedConfig(f"the labelling config is not valid XML ({error}); {WANTED}") from error
    images = {e.get("name"): (e.get("value") or "") for e in root.iter("Image")}
    reasons = []
    for choices in root.iter("Choices"):
        reason = _unusable(choices, images)
        if reason is None:
            target = str(choices.get("toName"))
            return ImageClasses(
                control=str(choices.get("name")),
                target=target,
                field=images[target][1:],
                classes=_classes(choices),
            )
        reasons.append(reason)
    found = reasons or [f"found only {_controls(root)}"]
    raise UnsupportedConfig(f"the labelling config has no supported control: {'; '.join(found)}; {WANTED}")


def _unusable(choices: ElementTree.Element, images: dict[str | None, str]) -> str | None:
    name = f"<Choices name={choices.get('name')!r}>"
    target = choices.get("toName")
    if target not in images:
        return f"{name} points at {target!r}, which is not an Image"
    if not images[target].startswith("$") or len(images[target]) < 2:
        return f"<Image name={target!r}> has value {images[target]!r}, not a $field of the task"
    if choices.get("choice", "single") not in ("single", "single-radio"):
        return f"{name} allows several choices at once"
    if choices.get("perRegion") == "true" or choices.get("perItem") == "true":
        return f"{name} asks per region or item, not per image"
    if len(_classes(choices)) < 2:
        return f"{name} has fewer than two fixed choices"
    return None


def _classes(choices: ElementTree.Element) -> tuple[str, ...]:
    names = [e.get("alias") or e.get("value") or "" for e in choices.iter("Choice")]
    return tuple(dict.fromkeys(name for name in names if name))


def _controls(root: ElementTree.Element) -> str:
    tags = sorted({f"<{e.tag}>" for e in root.iter() if e.get("toName")})
    return ", ".join(tags) or "no control at all"
