"""The mathematics of IWeS: which labels to ask for, what they weigh, and what they say about the pool."""

from iwes.draw import Draw, draw_seed
from iwes.errors import (
    BadArgument,
    BadInclusion,
    BadLabels,
    BadProbabilities,
    BadScore,
    EmptyPool,
    IwesError,
    ZeroScores,
)
from iwes.estimate import Estimate, estimate_mean
from iwes.probability import binary_entropy, disagreement, entropy, loss
from iwes.stream import draw
from iwes.weight import effective_size, normalise, share_capped, training_weight

__all__ = [
    "BadArgument",
    "BadInclusion",
    "BadLabels",
    "BadProbabilities",
    "BadScore",
    "Draw",
    "EmptyPool",
    "Estimate",
    "IwesError",
    "ZeroScores",
    "binary_entropy",
    "disagreement",
    "draw",
    "draw_seed",
    "effective_size",
    "entropy",
    "estimate_mean",
    "loss",
    "normalise",
    "share_capped",
    "training_weight",
]
