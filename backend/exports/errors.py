"""What can be wrong with a wish for an export."""

from __future__ import annotations


class ExportError(ValueError):
    """A training set that cannot be written as asked; the message says what to change."""


class NotNow(ExportError):
    """It could be written, but not now; the message says what it waits for."""
