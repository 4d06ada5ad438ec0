"""The pages of a project: what its loop does, what it knows, what comes next, and what an admin may change."""

from backend.dashboard.actions import actions
from backend.dashboard.pages import pages
from backend.dashboard.thumbnails import thumbnails

__all__ = ["actions", "pages", "thumbnails"]
