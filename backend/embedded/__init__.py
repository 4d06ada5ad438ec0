"""The servers we bring along and start ourselves: Redis, and for the demo a Label Studio."""
