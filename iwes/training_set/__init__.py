"""The one door out of this room: reads an exported weighted training set back, for training scripts."""

from iwes.training_set.loading import load_training_set
from iwes.training_set.training_set import TrainingSet

__all__ = ["TrainingSet", "load_training_set"]
