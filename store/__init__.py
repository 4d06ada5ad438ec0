"""Remembers: projects, tasks, rounds, draws, labels and models, in SQLite or PostgreSQL."""
