"""Learns: images, networks, weighted training, checkpoints and class probabilities, on torch."""
