"""Who is let in: tokens and roles, foreign pages, hostile paths and headers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from corollary.errors import InvalidInput, Source
from corollary.service import access
from corollary.service.endpoints import OPERATIONS
from corollary.service.server import listen, refuse_public
from corollary.service.settings import Settings
from corollary.service.tokens import Identity, Tokens
from tests.service.servers import EMPLOYEES, Server, error_of, serving

READ, WRITE, ADMIN = ("r" * 32, "w" * 32, "a" * 32)


@pytest.fixture(scope="module")
def guarded(university: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"# three\nread bob {READ}\nwrite ann {WRITE}\nadmin eve {ADMIN}\n")
    with serving(university, "--tokens", str(tokens), "--host", "0.0.0.0") as server:
        server.client.base_url = server.url.replace("0.0.0.0", "127.0.0.1")
        yield server


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_every_operation_but_health_needs_a_token(guarded: Server) -> None:
    paths = guarded.client.get("/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for method in operations:
            found = guarded.client.request(method.upper(), path)
            if path in ("/health", "/openapi.json"):
                assert found.status_code == 200
            else:
                assert error_of(found) == (401, "E603"), path
                assert found.headers["WWW-Authenticate"].startswith("Bearer")


def test_tokens_as_bearer_or_password(guarded: Server) -> None:
    query = {"query": EMPLOYEES}
    assert guarded.client.get("/sparql", params=query, headers=bearer(READ)).status_code == 200
    assert guarded.client.get("/sparql", params=query, auth=("any", READ)).status_code == 200
    for wrong in (READ[1:], READ + "r", "x", "\u00ff"):
        headers = {b"Authorization": f"Bearer {wrong}".encode()}
        assert error_of(guarded.client.get("/info", headers=headers)) == (401, "E603")
    assert error_of(guarded.client.get("/info", headers={"Authorization": "Basic !"}))[0] == 401
    assert guarded.client.get("/info", headers=bearer(ADMIN)).json()["role"] == "admin"


def test_readers_cannot_write(guarded: Server, server: Server) -> None:
    update = {"update": "CLEAR DEFAULT"}
    found = guarded.client.post("/sparql", data=update, headers=bearer(READ))
    assert error_of(found) == (403, "E604")
    assert error_of(server.client.post("/sparql", data=update)) == (403, "E604")


def test_logs_names_not_tokens(guarded: Server) -> None:
    guarded.client.get("/info", headers=bearer(WRITE))
    guarded.client.get("/health")
    while not any(event.get("user") == "ann" for event in guarded.events()):
        pass
    assert not any(WRITE in line for line in guarded.lines)


def test_foreign_pages_are_refused(server: Server) -> None:
    def status(**headers: str) -> int:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        found = server.client.get("/info", headers=shown)
        return found.status_code

    assert status() == 200
    assert status(origin=server.url) == 200
    assert status(origin="https://evil.example") == 403
    assert status(origin="null") == 403
    assert status(host="evil.example") == 403  # DNS rebinding
    assert status(host=f"localhost:{urlsplit(server.url).port}") == 200
    assert status(sec_fetch_site="cross-site") == 403
    assert status(sec_fetch_site="same-origin") == 200
    found = server.client.options(
        "/sparql", headers={"origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    )
    assert found.headers["Access-Control-Allow-Origin"] == "https://app.example"
    foreign = server.client.options("/sparql", headers={"origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in foreign.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/assets/../../jobs.py",
        "/static/%00",
        "//etc/passwd",
        "/index.html%00.txt",
        "/\\..\\..\\jobs.py",
        "/sparql/../../settings.py",
    ],
)
def test_no_path_reaches_the_file_system(server: Server, path: str) -> None:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        line = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n"
        connection.sendall(line.encode())
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 404"), answer[:100]


HOSTILE = [
    "'; DROP TABLE nothing; --",
    "\"; COPY nothing TO '/tmp/x'; --",
    "x' OR '1'='1",
    "read_csv('/etc/passwd')",
    "\u0000",
    "\r\nSet-Cookie: a=b",
    "../../etc/passwd",
    "${jndi:ldap://x}",
    "\ud7ff\uffff",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_reaches_the_sql_layer(server: Server, text: str) -> None:
    quoted = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    )
    query = f'SELECT ?x {{ ?x ?p "{quoted}" . FILTER(STR(?x) != "{quoted}") }}'
    found = server.client.get("/sparql", params={"query": query}, headers={"Accept": "text/csv"})
    assert (found.status_code, found.text.split()) == (200, ["x"]), found.text
    for path, name in (("/explain", "fact"), ("/facts", "pattern"), ("/rules", "mentions")):
        answer = server.client.get(path, params={name: text})
        assert answer.status_code in (200, 400, 404), answer.text
        assert "Set-Cookie" not in answer.headers
    assert server.client.get("/health").json()["status"] == "ready"


def test_every_response_protects_browsers(server: Server) -> None:
    for path in ("/", "/health", "/nowhere", "/sparql?query=ASK{}"):
        headers = server.client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_service_and_files_cannot_be_read_by_queries(server: Server) -> None:
    query = "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"
    assert error_of(server.client.get("/sparql", params={"query": query})) == (400, "E561")
    query = "ASK FROM <file:///etc/passwd> { ?s ?p ?o }"
    assert not server.client.get("/sparql", params={"query": query}).json()["boolean"]


def test_public_addresses_need_tokens() -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(InvalidInput, match="without tokens") as caught:
            refuse_public(Settings("s", host=host, open=True))
        assert caught.value.code == "E611"
    refuse_public(Settings("s", host="::1"))


def test_answers_are_sent_without_delay() -> None:
    """Else Nagle's algorithm holds the body back until the headers are acknowledged: 40 ms."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepting = writer.get_extra_info("socket")
            found.set_result(accepting.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with contextlib.closing(listen(Settings("s", port=0))) as listener:
            async with await asyncio.start_server(connected, sock=listener):
                with socket.create_connection(listener.getsockname()):
                    return await found

    assert asyncio.run(accepted())


@pytest.mark.parametrize(
    "line",
    [
        "read bob",
        "root bob 0123456789abcdef",
        "read b*b 0123456789abcdef",
        "# none",
        "read bob 0123456789abcdef\nadmin eve 0123456789abcdef",
    ],
)
def test_refuses_unusable_tokens(line: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Tokens.parse(Source("tokens", line))
    assert caught.value.code == "E610"
    assert "0123456789abcdef" not in caught.value.render()


def test_comments_do_not_shorten_tokens() -> None:
    found = Tokens.parse(Source("tokens", "#x\nread bob 0123456789abcdef#secret # the robot"))
    assert found.identify("Bearer 0123456789abcdef") is None
    assert found.identify("Bearer 0123456789abcdef#secret") == Identity("bob", "read")


def test_tokens_by_digest() -> None:
    digest = "sha256:9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f"
    found = Tokens.parse(Source("tokens", f"write bot {digest}"))
    assert found.identify(f"Bearer {digest}") is None
    assert found.identify("bearer 0123456789abcdef") == Identity("bot", "write")


def test_refuses_a_sender_that_is_unknown() -> None:
    settings = Settings("s", tokens=Tokens.parse(Source("t", f"read bob {READ}")))
    with pytest.raises(InvalidInput) as caught:
        access.require(access.identify({}, settings), "read", settings)
    assert caught.value.code == "E603"


def test_slow_and_broken_requests_end(server: Server) -> None:
    address = urlsplit(server.url)
    for data in (b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(data)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200


# -- requests that nobody sends by mistake ---------------------------------------------------------


def exchange(server: Server, head: list[bytes], body: bytes = b"") -> bytes:
    """Send bytes, and read until the server closes the connection."""
    address = urlsplit(server.url.replace("0.0.0.0", "127.0.0.1"))
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        host = f"Host: 127.0.0.1:{address.port}".encode()
        connection.sendall(b"\r\n".join([head[0], host, *head[1:], b"", body]))
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return answer


ODD = (
    b"\xff",
    b"\xc3\xa9",
    b"Basic \xff",
    b"Bearer \xc3\xa9",
    b"Basic " + b"A" * 30_000,
    b"\t",
    b"a,b;c=d",
)
READ_HEADERS = (
    b"Authorization",
    b"Origin",
    b"Accept",
    b"Content-Type",
    b"Content-Encoding",
    b"Last-Event-ID",
    b"Sec-Fetch-Site",
    b"If-None-Match",
    b"Access-Control-Request-Method",
    b"X-Request-Id",
    b"Cookie",
)


@pytest.mark.parametrize("name", READ_HEADERS)
def test_no_value_of_a_header_is_a_failure(guarded: Server, server: Server, name: bytes) -> None:
    line = b"POST /sparql?query=ASK%7B%7D HTTP/1.1"
    form = b"Content-Type: application/x-www-form-urlencoded"
    for one in (guarded, server):
        for value in ODD:
            others = [b"Connection: close", b"Content-Length: 0"]
            others += [form] if name != b"Content-Type" else []
            answer = exchange(one, [line, *others, name + b": " + value])
            assert answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), (value, answer[:300])


@pytest.mark.parametrize(
    "name", [b"Authorization", b"Origin", b"Content-Type", b"Content-Encoding", b"Last-Event-ID"]
)
def test_headers_that_decide_are_not_given_twice(guarded: Server, name: bytes) -> None:
    twice = [name + b": x", name + b": y"]
    answer = exchange(guarded, [b"GET /info HTTP/1.1", b"Connection: close", *twice])
    assert answer.startswith(b"HTTP/1.1 400"), answer[:300]
    assert b"E600" in answer


def test_nothing_is_smuggled_behind_a_request(server: Server) -> None:
    head = [
        b"POST /sparql HTTP/1.1",
        b"Content-Type: application/sparql-query",
        b"Content-Length: 4",
        b"Transfer-Encoding: chunked",
    ]
    answer = exchange(server, head, b"5\r\nASK{}\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400"), answer[:300]
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("header", "content"),
    [
        ({"Content-Encoding": "gzip"}, b"ASK{}"),
        ({"Content-Encoding": "br, gzip"}, b"ASK{}"),
        ({"Content-Type": "application/sparql-query; charset=utf-16"}, b"ASK{}"),
        ({"Content-Type": 'application/sparql-query; charset="utf-7"'}, b"ASK{}"),
        ({"Content-Type": "application/x-www-form-urlencoded; charset=utf-16"}, b"query=ASK{}"),
    ],
)
def test_encodings_that_are_not_read_are_refused(
    server: Server, header: dict[str, str], content: bytes
) -> None:
    headers = {"Content-Type": "application/sparql-query", "Content-Encoding": "identity"} | header
    found = server.client.post("/sparql", content=content, headers=headers)
    assert error_of(found) == (415, "E601")
    plain = {"Content-Type": 'application/sparql-query; charset="UTF-8"'}
    assert server.client.post("/sparql", content=b"ASK{}", headers=plain).status_code == 200


def test_errors_tell_nothing_of_this_machine(server: Server, guarded: Server) -> None:
    """No answer to a mistake has the folder of the store."""
    mistakes = [
        ("GET", "/diff?from=99"),
        ("GET", "/diff?from=0&to=99"),
        ("GET", "/sparql?query=ASK{}&version=99"),
        ("GET", "/info?version=99"),
        ("GET", "/changes?since=99"),
        ("GET", "/log?before=0"),
        ("GET", "/explain?fact=x"),
        ("GET", "/facts?pattern=nothing"),
        ("POST", "/revert?version=99"),
        ("POST", "/revert?to=99"),
        ("PUT", "/graph?default"),
    ]
    for method, path in mistakes:
        content = b"<a> <b> ." if method == "PUT" else b""
        headers = bearer(ADMIN) | {"Content-Type": "text/turtle"}
        found = guarded.client.request(method, path, content=content, headers=headers)
        assert str(guarded.store.parent) not in found.text, (path, found.text)
        assert "/tmp" not in found.text, (path, found.text)
        assert found.status_code < 500, (path, found.text)


def test_long_texts_are_not_sent_back(server: Server) -> None:
    text = "x" * 50_000
    found = server.client.post("/preview", json={"insert": text})
    assert error_of(found)[0] == 400
    assert len(found.content) < 10_000


def test_roles_of_all_operations(guarded: Server) -> None:
    """Each operation refuses each role below its own, whatever the method is called."""
    ranks = {"read": (0, READ), "write": (1, WRITE), "admin": (2, ADMIN)}
    for operation in OPERATIONS:
        if operation.role is None:
            continue
        needed = ranks[operation.role][0]
        for rank, token in ranks.values():
            if rank >= needed:
                continue
            found = guarded.client.request(operation.method, operation.path, headers=bearer(token))
            assert error_of(found) == (403, "E604"), operation.path
            override = bearer(token) | {"X-HTTP-Method-Override": operation.method}
            other = guarded.client.request("PATCH", operation.path, headers=override)
            assert error_of(other) == (405, "E613")
    update = {"update": "CLEAR DEFAULT"}
    for found in (
        guarded.client.post("/sparql", params=update, data={"a": "b"}, headers=bearer(READ)),
        guarded.client.post("/sparql", data=update, headers=bearer(READ)),
        guarded.client.get("/sparql", params=update, headers=bearer(READ)),
    ):
        assert found.status_code in (400, 403)
