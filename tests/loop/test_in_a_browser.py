"""The dashboard and Label Studio's own pages in a real browser, on the whole stack, with nothing reloaded by hand."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

import iwes
from backend.admin_token import admin_token
from backend.embedded.label_studio import LabelStudio
from jobs.connect import Options, connect
from jobs.workplace import Workplace
from models.plan import CHOOSE, Plan
from store import examples, projects, rounds
from store.tables import Project, RoundState
from tests.live import Pool, choice, make_pool, state, stored, write_digits
from tests.loop.browser import chromium, take, takes_screenshots
from tests.loop.conftest import POOL_SIZE

pytestmark = pytest.mark.studio

PAGES = {
    "overview": "",
    "next-tasks": "/tasks",
    "subsets": "/subsets",
    "jobs": "/jobs",
    "settings": "/settings",
    "export": "/exports",
}
A_WHILE = 180_000
"""Milliseconds: a round is trained and drawn meanwhile."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pool(studio: LabelStudio, truth: dict[str, str]) -> Pool:
    return make_pool(studio, truth)


@pytest.fixture(scope="module")
def project(live: Workplace, pool: Pool) -> Project:
    """Its first training tries several learning rates, and so takes long enough to be seen."""
    training = Plan(learning_rate=CHOOSE)
    options = Options(k=10, seed_size=10, reserve=2.0, rng_seed=3, training=training)
    return connect(live, pool.studio.url, pool.studio.token, pool.id, options).project


@pytest.fixture
def page(browser: Browser, live: Workplace, project: Project) -> Iterator[Page]:
    """Of an admin who is signed in. Whatever the browser complains of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if _is_complaint(message) else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{live.settings.backend_url}/login")
    page.get_by_label("Admin token").fill(admin_token(live.settings))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    yield page
    context.close()
    assert complaints == []


def _is_complaint(message: ConsoleMessage) -> bool:
    """A form that is refused is shown again with status 400, and a page that is not there says so with 404, which the
    browser notes as if they were faults."""
    return message.type == "error" and not re.search("status of 40[04]", message.text)


def open_(page: Page, live: Workplace, project: Project, name: str = "overview") -> None:
    page.goto(f"{live.settings.backend_url}/projects/{project.id}{PAGES[name]}")
    expect(page.locator(".tabs [aria-current=page]")).to_be_visible()


@pytest.fixture(scope="module")
def shown(live: Workplace, studio: LabelStudio, project: Project) -> Project:
    """Whose pages are looked at: of all projects that tests have left behind here, the one with most rounds; for
    screenshots one of its own, large enough for its figures to mean something."""
    if not takes_screenshots():
        with live.store.read() as session:
            return max(projects.connected(session), key=lambda each: len(rounds.all_of(session, each)))
    pool = make_pool(
        studio, write_digits(studio.files_root / "digits", 1_500, first=POOL_SIZE), title="Handwritten digits"
    )
    options = Options(k=40, seed_size=40, rng_seed=3)
    large = connect(live, pool.studio.url, pool.studio.token, pool.id, options).project
    annotator = pool.annotator()
    annotator.ready = lambda: state(live, large)[1] == RoundState.OPEN
    annotator.run(threading.Event(), limit=40 * 6 + 22)
    return large


def labels_told(page: Page) -> int:
    """As the first station of the loop shows them."""
    found = re.match(r"(\d+) of", page.locator(".station .figure").first.inner_text())
    return int(found[1]) if found else 0


def test_a_round_goes_by_while_the_page_is_open(page: Page, live: Workplace, pool: Pool, project: Project) -> None:
    card = page.get_by_role("article").filter(has=page.get_by_role("link", name="digits")).last
    card.get_by_role("link", name="digits").click()
    expect(page.locator(".sentence")).to_have_text("Round 0: collecting labels")
    loaded_at = page.evaluate("performance.timeOrigin")
    stop = threading.Event()
    annotator = pool.annotator(delay=0.5)
    # round 0, and half of round 1: whoever went on would have closed it before the page is looked at
    annotator.ready = lambda: len(annotator.given) < 15 and state(live, project)[1] == RoundState.OPEN
    labelling = annotator.run_in_thread(stop)
    try:
        expect(page.locator(".station.now b")).to_have_text("Training", timeout=A_WHILE)
        expect(page.locator(".sentence")).to_have_text("Round 1: collecting labels", timeout=A_WHILE)
        expect(page.locator(".station .figure").first).to_have_text(re.compile(r"[3-9] of 10"), timeout=A_WHILE)
        expect(page.locator("#accuracy .big")).to_be_visible(timeout=A_WHILE)
    finally:
        stop.set()
        labelling.join(30)
    assert annotator.failure is None
    assert page.evaluate("performance.timeOrigin") == loaded_at, "nobody has loaded it again"


def test_labels_made_in_label_studios_own_page_are_counted(
    browser: Browser, page: Page, live: Workplace, pool: Pool, project: Project
) -> None:
    open_(page, live, project)
    before = labels_told(page)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    editor = context.new_page()
    editor.goto(f"{pool.studio.url}/user/login")
    editor.locator("input[name=email]").fill(pool.studio.email)
    editor.locator("input[name=password]").fill(pool.studio.password)
    editor.locator("button[type=submit]").click()
    editor.goto(f"{pool.studio.url}/projects/{pool.id}/data")
    editor.get_by_role("button", name="Label All Tasks").click(timeout=A_WHILE)
    for _ in range(3):
        choice = editor.get_by_label(re.compile("^3")).first
        choice.wait_for(timeout=A_WHILE)
        assert editor.locator("input:checked").count() == 0, "nothing is ticked for annotators"
        choice.check()
        take(editor, "label-studio")
        with editor.expect_response(lambda answer: "/annotations" in answer.url and answer.request.method == "POST"):
            editor.get_by_test_id("bottombar-submit-button").click()
    context.close()
    expect(page.locator(".station .figure").first).to_have_text(f"{before + 3} of 10", timeout=A_WHILE)


def test_a_changed_k_is_kept_and_a_wrong_one_is_explained(page: Page, live: Workplace, project: Project) -> None:
    open_(page, live, project, "settings")
    page.get_by_label("Labels per round").fill("none")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("a whole number is expected")
    page.get_by_label("Labels per round").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("K is 7 now, and was 10: from round 2 on")
    assert stored(live, project.id).k == 7


def test_an_export_is_looked_at_downloaded_and_opened(
    page: Page, live: Workplace, project: Project, tmp_path: Path
) -> None:
    open_(page, live, project, "export")
    page.get_by_label("Format").select_option("csv")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="probability")).to_be_visible()
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download").click()
    path = tmp_path / coming.value.suggested_filename
    coming.value.save_as(path)
    read = iwes.load_training_set(path)
    with live.store.read() as session:
        labelled = examples.of_project(session, stored(live, project.id))
    assert len(labelled) >= 13
    expected = {example.studio_id: (example.class_name, example.weight) for example in labelled}
    found = zip(read.columns["task"].tolist(), read.columns["class"].tolist(), read.weights.tolist(), strict=True)
    assert {task: (name, pytest.approx(weight)) for task, name, weight in found} == expected


def test_a_subset_is_selected_from_the_page_and_exported(
    page: Page, live: Workplace, studio: LabelStudio, truth: dict[str, str]
) -> None:
    """Of a project whose tasks all came with a label; nobody labels anything."""
    some = dict(list(truth.items())[:60])
    pool = make_pool(studio, some, annotations=lambda name: [{"result": choice(truth[name])}])
    options = Options(k=10, seed_size=10, rng_seed=3)
    labelled = connect(live, pool.studio.url, pool.studio.token, pool.id, options).project
    open_(page, live, labelled, "subsets")
    page.get_by_label("Tasks", exact=True).fill("600")
    page.get_by_role("button", name="Select").click()
    expect(page.get_by_role("alert")).to_contain_text("give a number from 2 to 60")
    page.get_by_label("Tasks", exact=True).fill("24")
    page.get_by_role("button", name="Select").click()
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="dis"))
    expect(card).to_contain_text("24 of 24 tasks", timeout=A_WHILE)
    expect(card).to_contain_text("complete", timeout=A_WHILE)
    take(page, "subset")
    card.get_by_role("link", name="Export it").click()
    expect(page.get_by_role("heading", name="of at most 24 rows")).to_be_visible()
    expect(page.get_by_role("cell", name="labelled", exact=True).first).to_be_visible()


def assert_anybody_can_read(page: Page, name: str) -> None:
    page.wait_for_load_state("load")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"


@pytest.mark.timeout(1_200)  # for screenshots a project is labelled first
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_by_everybody(
    browser: Browser, page: Page, live: Workplace, shown: Project, scheme: str
) -> None:
    """Contrast, names of controls, alternative texts, order of headings: axe's rules of WCAG 2.2 AA."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for name in PAGES:
        open_(page, live, shown, name)
        assert_anybody_can_read(page, name)
        take(page, f"{name}-{scheme}")
    others = {"home": "/", "job": f"/projects/{shown.id}/jobs/project-{shown.id}-reconcile", "mistake": "/nowhere"}
    for name, path in others.items():
        page.goto(f"{live.settings.backend_url}{path}")
        assert_anybody_can_read(page, name)
        take(page, f"{name}-{scheme}")
    page.goto(f"{live.settings.backend_url}/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Admin token")).to_be_visible()
    assert_anybody_can_read(page, "login")


def test_pages_fit_a_phone_and_can_be_used_by_keyboard(
    browser: Browser, page: Page, live: Workplace, shown: Project
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in PAGES:
        open_(page, live, shown, name)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        expect(page.locator(".tabs [aria-current=page]")).to_be_in_viewport(ratio=1)
        take(page, f"{name}-phone")
    open_(page, live, shown)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
