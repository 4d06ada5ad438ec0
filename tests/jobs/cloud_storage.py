"""A real S3 server on this machine, with the buckets and keys a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import requests
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REGION = "us-east-1"

_SIGNED = f"AWS4-HMAC-SHA256 Credential=admin/20260101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
_VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


class CloudStorage:
    """Empty at first and open to everybody; and what it was asked for, by method and path."""

    def __init__(self, *, port: int = 0) -> None:
        # here, as it takes long to import, also where tests are only collected
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

        self.asked: list[str] = []
        """To read, that is; what tests put there is not counted."""
        self._answer = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", port, self._record, threaded=True, request_handler=MotoRequestHandler)
        self.port: int = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def make(self, bucket: str, *, versioned: bool = False) -> None:
        self._send("PUT", bucket)
        if versioned:
            self._send("PUT", f"{bucket}?versioning", _VERSIONED.encode())

    def put(self, path: str, content: bytes) -> str | None:
        """Under bucket/key; returns the version, if the bucket keeps versions."""
        return self._send("PUT", quote(path), content).headers.get("x-amz-version-id")

    def guard(self, *, locked: Iterable[str] = ()) -> tuple[str, str]:
        """Lets in from now on only who signs with the key and secret returned, and not to the paths that are locked."""
        import boto3

        rights = [
            {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
            *({"Effect": "Deny", "Action": "s3:*", "Resource": f"arn:aws:s3:::{path}"} for path in locked),
        ]
        policy = json.dumps({"Version": "2012-10-17", "Statement": rights})
        people = boto3.Session("admin", "admin", region_name=REGION).client("iam", endpoint_url=self.url)
        people.create_user(UserName="reader")
        people.put_user_policy(UserName="reader", PolicyName="reading", PolicyDocument=policy)
        made = people.create_access_key(UserName="reader")["AccessKey"]
        self._send("POST", "moto-api/reset-auth", b"0")
        return made["AccessKeyId"], made["SecretAccessKey"]

    def _record(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("HEAD", "GET"):
            self.asked.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        return self._answer(environ, start)

    def _send(self, method: str, path: str, content: bytes = b"") -> requests.Response:
        headers = {"Authorization": _SIGNED}  # only a signed request may overwrite, with whatever signature
        answer = requests.request(method, f"{self.url}/{path}", data=content, headers=headers, timeout=10)
        answer.raise_for_status()
        return answer

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self._send("POST", "moto-api/reset")  # what moto holds, and whom it lets in, belongs to the process
        self._send("POST", "moto-api/reset-auth", b"inf")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
