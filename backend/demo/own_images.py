"""A folder of one's own images as the demo's data: a folder per class, or a flat folder without labels."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"}


class DataError(ValueError):
    """Images that cannot be used as they are; the message says what was expected."""


@dataclass(frozen=True)
class OwnImage:
    source: Path
    truth: str | None

    @property
    def suffix(self) -> str:
        return self.source.suffix.lower()

    def write(self, path: Path) -> None:
        """Linked where possible: a copy of a large collection would take its room twice."""
        path.unlink(missing_ok=True)
        try:
            os.link(self.source.resolve(), path)
        except OSError:
            shutil.copyfile(self.source, path)


class OwnImages:
    """The images below `folder`; `classes` are needed for a flat folder and may widen those of a folder per class."""

    def __init__(self, folder: Path, classes: Sequence[str] = ()):
        self.folder = folder.resolve()
        if not self.folder.is_dir():
            raise DataError(f"DATA={folder}: no such folder")
        self._images = self._find()
        self.classes = self._choose_classes(list(classes))

    @property
    def name(self) -> str:
        """Tells apart folders of the same name, and the same folder with other classes."""
        digest = hashlib.sha256("\n".join([str(self.folder), *self.classes]).encode()).hexdigest()[:8]
        return f"{re.sub(r'[^a-z0-9]+', '-', self.folder.name.lower()).strip('-') or 'images'}-{digest}"

    @property
    def labelled(self) -> bool:
        return all(image.truth is not None for image in self._images)

    def images(self) -> Sequence[OwnImage]:
        return self._images

    def _find(self) -> list[OwnImage]:
        flat = [OwnImage(path, None) for path in _images_in(self.folder)]
        inner = sorted(path for path in self.folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        sorted_in = [OwnImage(path, folder.name) for folder in inner for path in _images_in(folder)]
        if flat and sorted_in:
            raise DataError(f"DATA={self.folder} holds both images and folders of images: give one or the other")
        if not flat and not sorted_in:
            raise DataError(f"DATA={self.folder} holds no images ({', '.join(sorted(SUFFIXES))})")
        return flat or sorted_in

    def _choose_classes(self, given: list[str]) -> list[str]:
        found = sorted({image.truth for image in self._images if image.truth is not None})
        if not found and not given:
            raise DataError(f"DATA={self.folder} is a flat folder: name the classes to choose from, CLASSES=a,b,c")
        if given and (unknown := [name for name in found if name not in given]):
            raise DataError(f"CLASSES lacks {', '.join(unknown)}, which DATA={self.folder} has a folder for")
        classes = given or found
        if len(set(classes)) < max(2, len(classes)):
            raise DataError(f"two or more different classes are needed, not {', '.join(classes)}")
        return classes


def parse_classes(text: str) -> list[str]:
    """The names in a list such as `cat,dog`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
