"""Backbones that others designed and trained: how they are built, and how files of their weights are read."""
