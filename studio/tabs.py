"""The Data Manager tabs of ours: drawn tasks by weight, the tasks of a subset, labels worth a second look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from studio.connection import remove
from studio.projects import StudioProject

_HIDDEN = [
    f"tasks:{name}"
    for name in (
        "inner_id",
        "annotations_results",
        "annotations_ids",
        "predictions_score",
        "predictions_model_versions",
        "predictions_results",
        "file_upload",
        "storage_filename",
        "created_at",
        "updated_at",
        "updated_by",
        "avg_lead_time",
        "draft_exists",
    )
]
"""What Label Studio's own default tab hides too; a tab without a list shows every column there is."""
_DEFAULT_TAB = {
    "type": "list",
    "target": "tasks",
    "title": "Default",
    "hiddenColumns": {"explore": _HIDDEN, "labeling": []},
}
_BESIDE_WEIGHTS = ["tasks:cancelled_annotations", "tasks:total_predictions"]
_WEIGHTS = ("al_weight", "al_probability", "al_inclusion", "al_round")
_DOUBTS = ("al_second_look", "al_disagreement")
_SAID = ("al_label", "al_suggested")
_SUBSET = "Subset "


@dataclass(frozen=True)
class Tab:
    """Tasks whose field `by` fits, ordered by `order`, highest first. The columns named as numbers need to be, or they
    would sort as texts."""

    title: str
    by: str
    operator: str
    value: str | int
    order: str
    numbers: tuple[str, ...]
    hides: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        kind = "Number" if isinstance(self.value, int) else "String"
        fitting = {
            "filter": f"filter:tasks:data.{self.by}",
            "operator": self.operator,
            "type": kind,
            "value": self.value,
        }
        hidden = [*_HIDDEN, *_BESIDE_WEIGHTS, *(f"tasks:data.{name}" for name in self.hides)]
        return {
            "type": "list",
            "target": "tasks",
            "title": self.title,
            "ordering": [f"-tasks:data.{self.order}"],
            "columnsDisplayType": {f"tasks:data.{name}": "Number" for name in self.numbers},
            "hiddenColumns": {"explore": hidden, "labeling": []},
            "filters": {"conjunction": "and", "items": [fitting]},
        }


WEIGHTS = Tab("Importance weights", "al_weight", "greater", 0, "al_weight", _WEIGHTS, (*_DOUBTS, *_SAID))
SECOND_LOOK = Tab(
    "Labels worth a second look",
    "al_second_look",
    "greater",
    0,
    "al_second_look",
    _DOUBTS,
    (*_WEIGHTS, "al_subset"),
)


def of_subset(name: str) -> Tab:
    return Tab(f"{_SUBSET}{name}", "al_subset", "contains", name, "al_weight", _WEIGHTS, (*_DOUBTS, *_SAID))


def ensure(project: StudioProject, tab: Tab) -> None:
    """Makes the tab unless there is one of its title. Label Studio shows a default tab only while there is no other, so
    one is made first where there is none."""
    there = _all(project)
    if any(_title(row) == tab.title for row in there):
        return
    if not there:
        _post(project, _DEFAULT_TAB)
    _post(project, tab.data())


def remove_ours(project: StudioProject) -> None:
    """And the default tab made beside them, if it is the last one and nobody has changed it since."""
    for row in _all(project):
        if _title(row) in (WEIGHTS.title, SECOND_LOOK.title) or _title(row).startswith(_SUBSET):
            remove(project, f"/api/dm/views/{row['id']}/")
    left = _all(project)
    if len(left) == 1 and left[0].get("data") == _DEFAULT_TAB:
        remove(project, f"/api/dm/views/{left[0]['id']}/")


def _all(project: StudioProject) -> list[dict[str, Any]]:
    return list(project.client.get("/api/dm/views/", project=project.id))


def _post(project: StudioProject, data: dict[str, Any]) -> None:
    project.client.post("/api/dm/views/", {"project": project.id, "data": data})


def _title(row: dict[str, Any]) -> str:
    return str(row.get("data", {}).get("title", ""))
