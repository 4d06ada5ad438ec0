"""The mathematics of IWeS: which labels to ask for, what they weigh, and what they say about the pool."""

from iwes import baselines
from iwes.assisted import assisted_balance, assisted_mean
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
from iwes.estimate import Estimate, class_balance, combine, estimate_mean, estimate_within, with_known
from iwes.pool_weight import PoolWeights
from iwes.probability import binary_entropy, disagreement, entropy, loss, margin
from iwes.stopping import Advice, labels_needed, round_confidence, stopping_advice
from iwes.stream import asked_first, draw
from iwes.subset import PROBABILITIES, Model, Probability, Subset, select_subset
from iwes.training_set import TrainingSet, load_training_set
from iwes.version_space import VersionSpace, VersionSpaceSample, sample_version_space
from iwes.weight import effective_size, normalise, share_capped, training_weight

__all__ = [
    "PROBABILITIES",
    "Advice",
    "BadArgument",
    "BadInclusion",
    "BadLabels",
    "BadProbabilities",
    "BadScore",
    "Draw",
    "EmptyPool",
    "Estimate",
    "IwesError",
    "Model",
    "PoolWeights",
    "Probability",
    "Subset",
    "TrainingSet",
    "VersionSpace",
    "VersionSpaceSample",
    "ZeroScores",
    "asked_first",
    "assisted_balance",
    "assisted_mean",
    "baselines",
    "binary_entropy",
    "class_balance",
    "combine",
    "disagreement",
    "draw",
    "draw_seed",
    "effective_size",
    "entropy",
    "estimate_mean",
    "estimate_within",
    "labels_needed",
    "load_training_set",
    "loss",
    "margin",
    "normalise",
    "round_confidence",
    "sample_version_space",
    "select_subset",
    "share_capped",
    "stopping_advice",
    "training_weight",
    "with_known",
]
