"""Listens: Label Studio's calls over HTTP, and people at the command line."""
