"""What connecting makes in Label Studio: the ML backend row, and the webhook with its secret."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from studio.errors import Forbidden, NotFound, Refused
from studio.projects import StudioProject

BACKEND_TITLE = "IWeS active learning"
"""Must differ from every queue's name, or Label Studio would ask for a prediction at each next task."""
BACKEND_USER = "label-studio"
SECRET_HEADER = "X-IWeS-Secret"  # noqa: S105 - the header's name
ACTIONS = [
    "ANNOTATION_CREATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_DELETED",
    "TASKS_CREATED",
    "TASKS_DELETED",
    "PROJECT_UPDATED",
]

PRIVATE_ADDRESS_HELP = (
    "since 1.23.1 Label Studio refuses loopback and private addresses. Start it with USE_DEFAULT_BANNED_SUBNETS=false "
    "and USER_ADDITIONAL_BANNED_SUBNETS=169.254.0.0/16, or give a public address with --backend-url"
)


def add_backend(project: StudioProject, url: str, secret: str) -> int:
    """Adds the ML backend; Label Studio calls its /health and /setup before it answers."""
    row = {
        "project": project.id,
        "url": url,
        "title": BACKEND_TITLE,
        "auth_method": "BASIC_AUTH",
        "basic_auth_user": BACKEND_USER,
        "basic_auth_pass": secret,
        "is_interactive": False,
    }
    try:
        return int(project.client.post("/api/ml", row)["id"])
    except Forbidden as error:
        # With some settings Label Studio answers 403 and stores the row all the same, without its webhook.
        remove_backends(project, url)
        raise Forbidden(f"Label Studio refuses the backend's address {url}: {PRIVATE_ADDRESS_HELP}") from error
    except Refused as error:
        raise Refused(
            f"Label Studio cannot reach the backend at {url}: {error}. Check that `iwes up` runs there and that "
            "Label Studio's machine can open that address; --backend-url gives another one"
        ) from error


def backends(project: StudioProject) -> list[dict[str, Any]]:
    return list(project.client.get("/api/ml", project=project.id))


def remove_backends(project: StudioProject, url: str) -> None:
    for row in backends(project):
        if str(row["url"]).rstrip("/") == url:
            remove(project, f"/api/ml/{row['id']}")


def set_webhook(project: StudioProject, url: str, secret: str) -> int:
    """Leaves exactly one webhook to us, the one that shows the secret: Label Studio makes one without when a backend
    is added, makes none where it dislikes the host's name, and forgets it when the backend is removed."""
    address = f"{url}/webhook"
    wanted = {
        "project": project.id,
        "url": address,
        "headers": {SECRET_HEADER: secret},
        "send_payload": True,
        "send_for_all_actions": False,
        "actions": ACTIONS,
        "is_active": True,
    }
    rows = webhooks(project, url)
    try:
        if rows:
            project.client.patch(f"/api/webhooks/{rows[0]['id']}/", wanted)
        else:
            rows = [project.client.post("/api/webhooks/", wanted)]
    except Refused as error:
        raise Refused(f"Label Studio refuses the webhook {address}: {_why_refused(address, error)}") from error
    except Forbidden as error:
        raise Forbidden(f"Label Studio refuses the webhook {address}: {PRIVATE_ADDRESS_HELP}") from error
    for extra in rows[1:]:
        remove(project, f"/api/webhooks/{extra['id']}/")
    kept = [row for row in webhooks(project, url) if row.get("headers") == wanted["headers"] and row["is_active"]]
    if len(kept) != 1:
        raise Refused(f"Label Studio took the webhook {address} but does not list it; nothing would arrive here")
    return int(kept[0]["id"])


def webhooks(project: StudioProject, url: str) -> list[dict[str, Any]]:
    rows = project.client.get("/api/webhooks/", project=project.id)
    return [row for row in rows if row["url"] == f"{url}/webhook" and row.get("project") == project.id]


def webhook_is_ours(project: StudioProject, url: str, secret: str) -> bool:
    """Whether the one webhook that leads here shows the secret and sends what we need."""
    rows = webhooks(project, url)
    wanted = {"headers": {SECRET_HEADER: secret}, "is_active": True, "send_payload": True}
    if len(rows) != 1 or any(rows[0].get(name) != value for name, value in wanted.items()):
        return False
    return bool(rows[0].get("send_for_all_actions")) or set(ACTIONS) <= set(rows[0].get("actions") or [])


def remove_webhooks(project: StudioProject, url: str) -> None:
    for row in webhooks(project, url):
        remove(project, f"/api/webhooks/{row['id']}/")


def remove(project: StudioProject, path: str) -> None:
    try:
        project.client.delete(path)
    except NotFound:
        return


def _why_refused(address: str, error: Refused) -> str:
    host = urlsplit(address).hostname or ""
    if ("." not in host and host != "localhost") or "_" in host:
        return f"it takes no host name without a dot or with an underscore; call {host!r} by its IP or a dotted alias"
    return str(error)
