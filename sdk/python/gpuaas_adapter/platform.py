"""The public GraphQL API, as any outsider uses it: node tasks, reports and secrets, with a narrowed token."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import ssl
import threading
import time
import urllib.parse
from typing import Any, Mapping

from .contract import Failure, Json, clip
from .log import Log, hide, new_log
from .scope import Interrupted, Scope, current
from .tasks import Task, TaskResult
from .types import Platform, read_time

_CALL_SECONDS = 40
"""Longer than any wait that the API offers."""
_TASK_WAIT = 20
_MAX_ANSWER = 4 << 20
_RENEW_BEFORE = 120
_RENEW_PAUSE = 15
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_REPORT_MEMBERS = 256

_TASK = "id state message exitCode stdout stderr result"
RUN_TASK = "mutation RunNodeTask($input: RunNodeTaskInput!) { runNodeTask(input: $input) { %s } }" % _TASK
GET_TASK = ("query GetNodeTask($id: ID!, $waitSeconds: Int) { nodeTask(id: $id, waitSeconds: $waitSeconds) { %s } }"
            % _TASK)
CANCEL_TASK = "mutation CancelNodeTask($taskId: ID!) { cancelNodeTask(taskId: $taskId) { id } }"
REPORT = "mutation ReportOperation($input: ReportOperationInput!) { reportOperation(input: $input) { id } }"
RENEW = "mutation RenewOperationToken { renewOperationToken { token expiresAt } }"
ISSUE = "mutation IssueRuntimeSecret($input: IssueRuntimeSecretInput!) { issueRuntimeSecret(input: $input) { id } }"
REDEEM = "mutation RedeemRuntimeSecret($secretId: ID!) { redeemRuntimeSecret(secretId: $secretId) { value } }"


class ApiError(Exception):
    """ApiError is a refusal of the public API, or an answer that did not arrive."""

    def __init__(self, code: str, message: str, retryable: bool, reasons: Json = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.retryable = code, message, retryable
        self.reasons = reasons or []


class Client:
    """Client speaks to the public API with a token that it renews before its end. It is safe for many threads."""

    def __init__(self, platform: Platform, correlation_id: str = "", log: Log | None = None,
                 renews: bool = True, traceparent: str = "") -> None:
        self._lock = threading.Lock()
        self._correlation, self._log, self._renews = correlation_id, log or new_log("error"), renews
        self._traceparent = traceparent
        self._renewed = float("-inf")
        self.take(platform)

    def take(self, platform: Platform) -> None:
        """take replaces the access when a new dispatch has a new token."""
        hide(platform.token)
        with self._lock:
            self._platform = platform

    def execute(self, query: str, variables: Mapping[str, Json] | None = None) -> Any:
        """execute sends one query or mutation, once, and returns its data; a refusal is an ApiError."""
        self._renew_if_due()
        return self._send(query, variables or {}, current())

    def persist(self, query: str, variables: Mapping[str, Json] | None = None, cut: bool = True) -> Any:
        """persist repeats a call until it succeeds, is refused for good, or the scope of this thread ends. Without cut,
        the scope's end does not cut off a request that is under way: so everything that it creates is known."""
        scope, wait = current(), _FIRST_PAUSE
        while True:
            scope.check()
            try:
                self._renew_if_due()
                return self._send(query, variables or {}, scope if cut else Scope())
            except ApiError as error:
                if not error.retryable:
                    raise
                self._log.debug("the platform did not answer; trying again", error=str(error), wait=wait)
            scope.pause(wait)
            wait = min(2 * wait, _LONGEST_PAUSE)

    def run(self, member_id: str, key: str, task: Task) -> TaskResult:
        """run requests a node task in the sandbox of a member and waits until it has ended. The result may be a failure
        of the task. When the scope ends first, the task is canceled, except when the adapter stops: its next start
        reads the task again."""
        made = self.persist(RUN_TASK, {"input": {
            "memberId": member_id, "kind": task.kind, "spec": task.spec, "timeoutSeconds": task.seconds,
            "idempotencyKey": key,
        }}, cut=False)["runNodeTask"]
        try:
            return self._await(_result(made))
        except BaseException as error:
            if not (isinstance(error, Interrupted) and error.why == "stopping"):
                self._abandon(made["id"])
            raise

    def _await(self, task: TaskResult) -> TaskResult:
        while not task.ended:
            asked = time.monotonic()
            task = _result(self.persist(GET_TASK, {"id": task.id, "waitSeconds": _TASK_WAIT})["nodeTask"])
            # A platform that answers without waiting must not be called in a tight loop.
            if not task.ended and time.monotonic() - asked < _FIRST_PAUSE:
                current().pause(_FIRST_PAUSE)
        return task

    def _abandon(self, task_id: str) -> None:
        """Best effort: every task also has a timeout of its own."""
        scope = Scope(None, _LONGEST_PAUSE)
        try:
            self._send(CANCEL_TASK, {"taskId": task_id}, scope)
        except (ApiError, TimeoutError) as error:
            self._log.debug("node task not canceled", task=task_id, error=str(error))
        finally:
            scope.close()

    def report(self, status: Mapping[str, Json]) -> None:
        """report sends an operation's status once, without a retry: the platform reads the feed as well."""
        members = [_member_input(member) for member in status["members"]]
        for begin in range(0, max(len(members), 1), _REPORT_MEMBERS):
            self.execute(REPORT, {"input": {
                "operationId": status["operationId"], "attempt": status["attempt"], "phase": status["phase"],
                "percent": status["percent"], "message": clip(status["message"], 2000),
                "members": members[begin:begin + _REPORT_MEMBERS],
            }})

    def issue_secret(self, instance_id: str, purpose: str, *, member_id: str = "", artifact_digest: str = "",
                     seconds: int = 0, again: bool = False, key: str = "") -> str:
        """issue_secret creates a runtime secret of the instance and returns its id. With a member it is for that
        member's node, by a task's secretRef; without, for the adapter itself. again allows repeated delivery until it
        expires: a task that must survive a restart of the node's agent needs that."""
        wanted: dict[str, Json] = {
            "instanceId": instance_id, "purpose": purpose, "audience": "NODE" if member_id else "ADAPTER",
            "delivery": "UNTIL_EXPIRY" if again else "ONCE", "idempotencyKey": key or secrets.token_hex(16),
        }
        optional = {"memberId": member_id, "artifactDigest": artifact_digest, "ttlSeconds": seconds}
        wanted.update({name: value for name, value in optional.items() if value})
        return str(self.persist(ISSUE, {"input": wanted})["issueRuntimeSecret"]["id"])

    def redeem_secret(self, secret_id: str) -> str:
        """redeem_secret takes delivery of a secret that is bound to the adapter. It is masked in the log from then on;
        do not write it anywhere else."""
        value = self.persist(REDEEM, {"secretId": secret_id})["redeemRuntimeSecret"]["value"]
        if not value:
            raise ApiError("INTERNAL", "the platform returned no value", False)
        hide(value)
        return str(value)

    def _renew_if_due(self) -> None:
        """Its failure is not raised: the call's own refusal states more. A token without an end is not renewed."""
        with self._lock:
            ends, now = self._platform.token_expires_at, time.time()
            due = self._renews and ends > 0 and ends - now < _RENEW_BEFORE and now - self._renewed > _RENEW_PAUSE
            if due:
                self._renewed = now
        if not due:
            return
        try:
            fresh = self._send(RENEW, {}, current())["renewOperationToken"]
            expires = read_time(fresh["expiresAt"], "expiresAt")
        except (ApiError, KeyError, TypeError) as error:
            self._log.debug("operation token not renewed", error=str(error))
            return
        with self._lock:
            url = self._platform.graphql_url
        self.take(Platform(url, fresh["token"], expires))

    def _send(self, query: str, variables: Mapping[str, Json], scope: Scope) -> Any:
        with self._lock:
            platform = self._platform
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {platform.token}",
                   "User-Agent": "gpuaas-adapter-python"}
        if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", self._correlation):
            headers["X-Correlation-ID"] = self._correlation
        if trace_id(self._traceparent):  # continues the trace in which the platform called
            headers["traceparent"] = self._traceparent
        body = json.dumps({"query": query, "variables": variables}).encode()
        status, raw = _post(platform.graphql_url, headers, body, scope)
        return _data(status, raw)


def trace_id(traceparent: str) -> str:
    """trace_id returns the id of the trace that a W3C trace context names; empty for one that is malformed."""
    found = re.fullmatch(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", traceparent)
    return found[1] if found and found[1].strip("0") else ""


def _post(url: str, headers: Mapping[str, str], body: bytes, scope: Scope) -> tuple[int, bytes]:
    """_post sends one request, without redirects, and gives up when the scope ends: its socket is shut down."""
    at = urllib.parse.urlsplit(url)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise ApiError("INVALID_ARGUMENT", "platform.graphqlUrl is not a URL", False)
    scope.check()
    connection: http.client.HTTPConnection
    if at.scheme == "https":
        connection = http.client.HTTPSConnection(at.hostname, at.port, timeout=10, context=ssl.create_default_context())
    else:
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=10)
    unhook = scope.on_end(lambda: _shut(connection))
    try:
        connection.connect()
        scope.check()
        connection.sock.settimeout(_CALL_SECONDS)
        connection.request("POST", (at.path or "/") + (f"?{at.query}" if at.query else ""), body, dict(headers))
        answer = connection.getresponse()
        raw = answer.read(_MAX_ANSWER + 1)
        if len(raw) > _MAX_ANSWER:
            raise ApiError("DOCUMENT_TOO_LARGE", f"the platform's answer is longer than {_MAX_ANSWER} bytes", False)
        scope.check()  # a read that was cut off looks like an early end
        return answer.status, raw
    except (OSError, http.client.HTTPException) as error:
        scope.check()
        raise ApiError("UNAVAILABLE", f"the platform does not answer: {error}", True) from error
    finally:
        unhook()
        connection.close()


def _shut(connection: http.client.HTTPConnection) -> None:
    try:
        connection.sock.shutdown(2)
    except (OSError, AttributeError):
        pass  # not connected yet, or already closed


def _data(status: int, raw: bytes) -> Any:
    if status == 429 or status >= 500:
        raise ApiError("UNAVAILABLE", f"the platform answers {status}", True)
    try:
        answer = json.loads(raw)
        errors = answer.get("errors") or []
        data = answer.get("data")
    except (ValueError, AttributeError) as error:
        raise ApiError("INTERNAL", f"the platform answers {status} without JSON", False) from error
    if errors:
        said = errors[0].get("extensions") or {}
        raise ApiError(str(said.get("code", "INTERNAL")), str(errors[0].get("message", "")),
                       said.get("retryable") is True, said.get("reasons"))
    if data is None:
        raise ApiError("INTERNAL", f"the platform answers {status} without data", False)
    return data


def _result(task: Mapping[str, Json]) -> TaskResult:
    """_result takes the output fields from the result object, where the agent put them there."""
    result = task.get("result")
    inner: Mapping[str, Json] = result if isinstance(result, dict) else {}
    code = task.get("exitCode")
    return TaskResult(
        id=str(task["id"]), state=str(task["state"]), message=str(task.get("message") or ""),
        exit_code=inner.get("exitCode") if code is None else code,
        stdout=task.get("stdout") or inner.get("stdout") or "",
        stderr=task.get("stderr") or inner.get("stderr") or "", result=inner,
    )


def _member_input(member: Mapping[str, Json]) -> dict[str, Json]:
    """_member_input returns a member as the public API takes it: its enums are upper case."""
    out = {"id": member["id"], "status": member["status"].upper(), "health": member["health"].upper()}
    if member.get("detail") is not None:
        out["detail"] = member["detail"]
    return out


def as_failure(step: str, error: ApiError) -> Failure:
    """as_failure returns a refusal of the public API as a failure with its owner."""
    return Failure("PLATFORM_REFUSED", clip(f"step {step}: {error.code} {error.message}", 2048), "platform")
