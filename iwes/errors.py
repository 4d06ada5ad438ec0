"""The named errors of this package; each message says what is wrong and what to do about it."""


class IwesError(ValueError):
    """Parent of every error raised by `iwes`; a `ValueError`, so existing handlers keep working."""


class BadArgument(IwesError):
    """An option is outside its range; the message names the argument and the range."""


class BadProbabilities(IwesError):
    """A matrix of class probabilities has a row that is none; the message names the first such row."""


class BadLabels(IwesError):
    """A label is not a class of the probabilities it belongs to; the message names its row."""


class BadScore(IwesError):
    """A score is negative, not finite, or above 1 where a probability is wanted; the message names the task."""


class EmptyPool(IwesError):
    """There is no task left to draw from."""


class ZeroScores(IwesError):
    """Too few tasks have a chance above zero for the number wanted, so that coins would be tossed for ever."""


class BadInclusion(IwesError):
    """An inclusion probability is outside (0, 1]; the message names its row."""
