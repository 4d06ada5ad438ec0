"""A real Chromium, driven by Playwright: what people see, and what they press."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable() -> str:
    """Skips where there is none; but where CI says that it tests, a missing browser is a fault."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        said = "no Chromium here: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
    return str(found)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


def takes_screenshots() -> bool:
    """Where IWES_SCREENSHOTS names a folder for them: `make screenshots` does."""
    return bool(os.environ.get("IWES_SCREENSHOTS"))


def take(page: Page, name: str) -> None:
    """A screenshot of the whole page for the docs, with the pictures that are only loaded once they are scrolled to."""
    if takes_screenshots():
        page.evaluate("document.querySelectorAll('img').forEach((each) => { each.loading = 'eager'; })")
        page.wait_for_timeout(1_500)  # a page that follows its project is never idle
        page.screenshot(path=Path(os.environ["IWES_SCREENSHOTS"]) / f"{name}.png", full_page=True)
