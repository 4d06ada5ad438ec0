"""The labelling config of an image with one choice among classes."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

IMAGE = "image"
CONTROL = "label"


def label_config(classes: Sequence[str]) -> str:
    """Classes of one character are their own hotkeys; for others Label Studio numbers the choices itself."""
    own_keys = all(len(name) == 1 and name.isascii() and name.isalnum() for name in classes)
    choices = "\n".join(_choice(name, own_keys) for name in classes)
    return (
        "<View>\n"
        f'  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{IMAGE}" choice="single" showInline="true">\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


def _choice(name: str, own_key: bool) -> str:
    hotkey = f" hotkey={quoteattr(name)}" if own_key else ""
    return f"    <Choice value={quoteattr(name)}{hotkey}/>"
