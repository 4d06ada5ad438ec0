"""Why an image is set aside."""

from __future__ import annotations

import re

SHOWN = 120
LONGEST_SHOWN = 8192  # characters looked through
WHOLE_SECONDS = 30.0
"""An image that takes longer to fetch is given up."""


class SetAside(ValueError):
    """The image cannot be had; the message says why, in words for a person."""


class NotServed(SetAside):
    """Whoever has the image does not give it. Of one that is the image's own problem, of all it is not."""


class Away(NotServed):
    """The image cannot be had now, and is not to blame: worth another try later."""


_USER = re.compile(r"://[^/?#]*@")
_QUERY = re.compile(r"(?i)^(https?://[^?#]*)[?#].*", re.DOTALL)


def shown(address: str) -> str:
    """The address on one line and short; without what gives access to it, a password or the signature in its query."""
    address = _QUERY.sub(r"\1?…", _USER.sub("://…@", address[:LONGEST_SHOWN]))
    line = "".join(sign if sign.isprintable() else "�" for sign in address[: SHOWN + 1])
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"
