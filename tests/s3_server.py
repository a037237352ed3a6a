"""An S3 server with faults on demand: `python -m tests.s3_server` prints its port.

The server is `moto`. Its conditional puts check and write in two steps, so puts are serialized.
`GET /-/faults?refuse=N&lose=N&list=SECONDS` sets the faults of the following requests: every Nth
request is refused with 503, every Nth conditional put is carried out and then answered with 500,
listings are delayed. The answer has the number of requests since the last setting, by kind.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

BUCKET = "corollary-tests"
ROOT = Path(__file__).parents[1]
_REFUSAL = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


class Faults:
    """A WSGI application around another one."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._settings: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environment["PATH_INFO"] == "/-/faults":
            return self._set(environment, start)
        size = int(environment.get("CONTENT_LENGTH") or 0)
        body = environment["wsgi.input"].read(size) if size else b""
        if len(body) < size:  # the client was killed
            return _answer(start, "400 Bad Request", b"")
        environment["wsgi.input"] = io.BytesIO(body)
        method, query = environment["REQUEST_METHOD"], environment["QUERY_STRING"]
        is_commit = method == "PUT" and "HTTP_IF_NONE_MATCH" in environment
        kind = "list" if "list-type" in query else "commit" if is_commit else method
        with self._lock:
            settings = self._settings
            self._counts.update(("all", kind))
            every, number = int(settings.get("refuse", 0)), self._counts["all"]
            lost = int(settings.get("lose", 0))
            loses = is_commit and lost > 0 and self._counts["commit"] % lost == 0
        if every and number % every == 0:
            return _answer(start, "503 Slow Down", _REFUSAL)
        if kind == "list":
            time.sleep(settings.get("list", 0.0))
        if loses:
            list(self._application(environment, lambda *_: None))
            return _answer(start, "500 Internal Server Error", b"")
        answer: Iterable[bytes] = self._application(environment, start)
        return answer

    def _set(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        with self._lock:
            counts = json.dumps(self._counts).encode()
            self._counts.clear()
            pairs = parse_qsl(environment["QUERY_STRING"])
            self._settings = {name: float(value) for name, value in pairs}
        return _answer(start, "200 OK", counts)


def _answer(start: Any, status: str, body: bytes) -> Iterable[bytes]:
    start(status, [("Content-Length", str(len(body)))])
    return [body]


def main() -> None:
    """Serve until the standard input is closed, as it is when the parent ends."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.responses import S3Response
    from werkzeug.serving import make_server

    lock = threading.Lock()
    put: Any = S3Response.put_object

    def serialized(self: Any, *arguments: Any, **named: Any) -> Any:
        with lock:
            return put(self, *arguments, **named)

    S3Response.put_object = serialized  # type: ignore[method-assign]
    application = Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


class S3:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def faults(self, **settings: float) -> dict[str, int]:
        """Set the faults; return the number of requests since the last setting, by kind."""
        counts: dict[str, int] = json.loads(self.request("GET", f"/-/faults?{urlencode(settings)}"))
        return counts

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a plain request, such as the creation of a bucket, or a change of an object."""
        request = urllib.request.Request(self.address + path, data=body, method=method)
        # The server verifies no signature, but finds the service by this header.
        scope = "Credential=key/20260101/us-east-1/s3/aws4_request"
        request.add_header("Content-Type", "application/octet-stream")
        request.add_header("Authorization", f"AWS4-HMAC-SHA256 {scope}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def running() -> Iterator[S3]:
    """Start a server with an empty bucket."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server"],
        cwd=ROOT,
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        try:
            s3 = S3(int(process.stdout.readline()))
            s3.request("PUT", f"/{BUCKET}")
            yield s3
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
