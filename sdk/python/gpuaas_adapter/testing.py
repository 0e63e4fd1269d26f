"""A stand-in for the platform, for tests of an adapter that need no platform: it publishes a key set, signs requests,
and answers the public API's calls for node tasks from a function of the test. It executes nothing; "appctl adapter
check" does."""

from __future__ import annotations

import http.server
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping, Sequence

from nacl.public import PrivateKey
from nacl.encoding import Base64Encoder
from nacl.signing import SigningKey

from .app import App
from .controller import Controller, listen
from .log import Log, new_log
from .sign import body_digest, to_base64
from .types import write_time

Reply = Mapping[str, Any]
Node = Callable[[str, str, Mapping[str, Any]], "Reply | None"]
"""Node says how a task ends: by its member, kind and spec. None leaves it running, and it is asked again."""

NAME = "under-test"


def succeed(_member: str, kind: str, _spec: Mapping[str, Any]) -> Reply:
    """succeed is a node that does everything at once."""
    result: dict[str, Any] = {"exitCode": 0, "stdout": "", "stderr": ""}
    if kind == "TEARDOWN":
        result = {"residue": {"processes": [], "mounts": [], "files": 0}}
    elif kind.endswith("_PROCESS"):
        result = {"process": {"state": "running"}}
    return {"state": "SUCCEEDED", "message": "", "result": result}


class FakePlatform:
    """FakePlatform is the platform of one test; use it in a with statement."""

    def __init__(self, node: Node = succeed) -> None:
        self.node = node
        self.key, self.kid = SigningKey.generate(), "key-1"
        self.sealing = PrivateKey.generate()
        self.tasks: dict[tuple[str, str], dict[str, Any]] = {}
        self.traces: list[str] = []
        """traces are the W3C trace contexts that the operations of the public API came with, in order."""
        self.calls: list[tuple[str, str, Mapping[str, Any]]] = []
        """calls are the operations of the public API that were asked for: name, bearer token, variables."""
        self.failures: list[int] = []
        """failures are statuses that the next calls of the public API answer with, first to last."""
        self.token_seconds = 3600.0
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakePlatform:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None,
                 _trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    # -- the adapter's side

    def adapter(self, apps: Sequence[App], state_dir: Path, log: Log | None = None) -> Controller:
        """adapter returns an adapter of this platform that is not started yet."""
        return Controller(
            name=NAME, build="test", apps=apps, state_dir=state_dir, issuer=self.url, jwks_url=f"{self.url}/jwks",
            graphql_url=f"{self.url}/graphql", log=log or new_log("error"), listener=listen("127.0.0.1:0"),
        )

    def sign(self, method: str, target: str, body: bytes, **other: Any) -> str:
        """sign returns a request token; the given claims replace the right ones."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": NAME, "iat": now, "exp": now + 60, "jti": secrets.token_hex(8), "htm": method,
                  "htu": target, "bd": body_digest(body), **other}
        header = {"alg": "EdDSA", "typ": "JWT", "kid": self.kid}
        signed = ".".join(to_base64(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{to_base64(self.key.sign(signed.encode()).signature)}"

    def call(self, adapter: Controller, method: str, target: str, body: Any = None, token: str | None = None,
             **headers: str) -> tuple[int, Any]:
        """call sends a signed request to the adapter and returns the status and the body of its answer."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{adapter.address}{target}", raw or None, method=method)
        request.add_header("Authorization", f"Bearer {token or self.sign(method, target, raw)}")
        request.add_header("Content-Type", "application/json")
        request.add_header("X-Platform-Token", "call-token")
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def await_end(self, adapter: Controller, operation: str, seconds: float = 30) -> Any:
        """await_end follows an operation to its end, and returns its status."""
        end = time.monotonic() + seconds
        cursor = ""
        while time.monotonic() < end:
            code, status = self.call(adapter, "GET", f"/v1/operations/{operation}")
            if code == 200 and status["state"] in ("succeeded", "failed", "canceled"):
                return status
            cursor = self.call(adapter, "GET", f"/v1/operations?wait=1&after={cursor}")[1]["cursor"]
        raise TimeoutError(f"operation {operation} did not end")

    def dispatch(self, operation: str, kind: str, app: App, members: int = 2, **other: Any) -> dict[str, Any]:
        """dispatch returns the body of a dispatch for an instance of the app's first component."""
        component = str(app.components[0]["key"])
        return {
            "operationId": operation, "kind": kind, "attempt": 1, "deadline": write_time(time.time() + 60),
            "correlationId": "cor-1", "targets": [], "change": None, "platform": self.access(f"token-{operation}"),
            "instance": {"id": "ins_1", "name": "one", "tenantId": "ten_1", "projectId": "prj_1", "app": app.slug,
                         "version": "1.0.0", "config": {}, "components": [{"key": component, "count": members}]},
            "members": [self.member(component, n) for n in range(members)], **other,
        }

    def access(self, token: str) -> dict[str, str]:
        """access returns the adapter's access to this platform."""
        expires = write_time(time.time() + self.token_seconds)
        return {"graphqlUrl": f"{self.url}/graphql", "token": token, "tokenExpiresAt": expires}

    def member(self, component: str, index: int) -> dict[str, Any]:
        """member returns one member of the instance."""
        key = self.sealing.public_key.encode(Base64Encoder).decode()
        node = {"id": f"nod_{index}", "name": f"node-{index}", "address": "127.0.0.1", "sealingKey": key,
                "allocationId": "alc_1", "shape": "baremetal", "gpus": 0, "cpus": 1, "memoryMiB": 1024}
        return {"id": f"mem_{index}", "componentKey": component, "index": index, "status": "active", "node": node}

    # -- the public API

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        platform = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, {"keys": [platform.jwk()]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                token = self.headers["Authorization"].removeprefix("Bearer ")
                platform.traces.append(self.headers.get("traceparent", ""))
                self._send(*platform._graphql(body["query"], token, body["variables"]))

            def _send(self, status: int, body: Any) -> None:
                raw = json.dumps(body).encode()
                self.send_response_only(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def jwk(self) -> dict[str, str]:
        """jwk returns the public key in the form of the key set."""
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": to_base64(bytes(self.key.verify_key))}

    def _graphql(self, query: str, token: str, variables: Mapping[str, Any]) -> tuple[int, Any]:
        name = query.split("{")[0].split("(")[0].split()[1]
        with self._lock:
            self.calls.append((name, token, variables))
            if self.failures:
                return self.failures.pop(0), {}
        if name == "RunNodeTask":
            return self._run(variables["input"])
        if name == "GetNodeTask":
            member, key = variables["id"].split("/", 1)
            return 200, {"data": {"nodeTask": self._advance(self.tasks[member, key])}}
        data = {
            "CancelNodeTask": {"cancelNodeTask": {"id": ""}}, "ReportOperation": {"reportOperation": {"id": ""}},
            "RenewOperationToken": {"renewOperationToken": {"token": f"renewed-{token}",
                                                            "expiresAt": write_time(time.time() + 3600)}},
            "IssueRuntimeSecret": {"issueRuntimeSecret": {"id": "sec_1"}},
            "RedeemRuntimeSecret": {"redeemRuntimeSecret": {"value": "redeemed-secret"}},
        }
        return 200, {"data": data[name]}

    def _run(self, given: Mapping[str, Any]) -> tuple[int, Any]:
        """The same key with the same kind, spec and timeout is the same task."""
        key = (str(given["memberId"]), str(given["idempotencyKey"]))
        with self._lock:
            fresh = {"id": "/".join(key), "input": given, "state": "PENDING", "message": "", "begun": 0}
            task = self.tasks.setdefault(key, fresh)
        if task["input"] != given:
            said = {"code": "IDEMPOTENCY_KEY_REUSED", "retryable": False}
            return 200, {"errors": [{"message": "the key was used", "extensions": said}]}
        return 200, {"data": {"runNodeTask": self._advance(task)}}

    def _advance(self, task: dict[str, Any]) -> Mapping[str, Any]:
        if task["state"] in ("PENDING", "RUNNING"):
            given = task["input"]
            task.update(self.node(given["memberId"], given["kind"], given["spec"]) or {"state": "RUNNING"})
            task["begun"] += 1
        return {name: task.get(name) for name in ("id", "state", "message", "exitCode", "stdout", "stderr", "result")}
