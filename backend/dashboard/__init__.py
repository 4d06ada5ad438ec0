"""The pages of a project: what its loop does, what it knows, what comes next, and what an admin may change."""
