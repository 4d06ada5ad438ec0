"""Speaks to a Label Studio server: its calls, its labelling config, its messages."""
