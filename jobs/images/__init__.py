"""From a task to its pixels: wherever the task says the image is, as far as we are allowed to fetch from there."""

from jobs.images.originals import Originals
from jobs.images.source import ImageSource, Loaded, NothingServed

__all__ = ["ImageSource", "Loaded", "NothingServed", "Originals"]
