"""How good a model is that was trained on a weighted subset of labels that are all there already."""
