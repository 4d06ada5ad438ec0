"""Images written out in the task itself: `data:image/png;base64,…`."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from jobs.images.reasons import SetAside
from studio.files import MOST_BYTES

_HEAD = re.compile(r"data:image/[a-z0-9.+-]+(?:;[a-z0-9.+=-]+)*;base64", re.IGNORECASE)
_BLANKS = b" \t\r\n"


def decode(address: str) -> bytes:
    """The bytes of a data URI; nothing is fetched. Raises SetAside."""
    head, _, text = address.partition(",")
    if not _HEAD.fullmatch(head):
        raise SetAside("the data: address does not begin with data:image/…;base64,")
    if len(text) > 2 * MOST_BYTES:  # before anything is decoded; base64 takes 4/3, blanks and %2B some more
        raise SetAside(f"the image in the data: address has more than {MOST_BYTES // 2**20} MB")
    try:
        content = base64.b64decode(unquote_to_bytes(text).translate(None, _BLANKS), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SetAside(f"the data: address holds broken base64: {error}") from error
    if len(content) > MOST_BYTES:
        raise SetAside(f"the image in the data: address has more than {MOST_BYTES // 2**20} MB")
    return content
