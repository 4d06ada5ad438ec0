"""Names of folders for classes: safe on every file system, and from which the class can be read again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import quote

LONGEST = 120  # bytes; file systems allow 255, and whatever lies around the folder needs some
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
"""Devices to Windows, whatever is written behind."""


def class_folders(classes: Sequence[str]) -> dict[str, str]:
    """The folder of each class, all different even where a file system takes A for a. Letters and digits of English,
    and - _ . inside of a name, stay as they are; anything else is percent-encoded as in a web address, so that a name
    can be read again with `urllib.parse.unquote`. One that would be too long ends in a digest instead: what it stands
    for is in the manifest alone."""
    taken: set[str] = set()
    found: dict[str, str] = {}
    for name in classes:
        folder = _folder(name)
        if folder.lower() in taken:
            folder = "".join(f"%{ord(sign):02X}" if sign.isupper() and sign.isascii() else sign for sign in folder)
        if len(folder) > LONGEST or folder.lower() in taken:
            folder = f"{folder[: LONGEST - 17]}~{sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
        taken.add(folder.lower())
        found[name] = folder
    return found


def _folder(name: str) -> str:
    encoded = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    if not encoded or encoded[0] in ".-_" or _RESERVED.fullmatch(encoded):
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}" if encoded else "%"
    return f"{encoded[:-1]}%2E" if encoded.endswith(".") else encoded
