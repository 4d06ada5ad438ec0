"""How well models learn, score and keep to their bounds, each measured next to the plainest way of doing the same."""
