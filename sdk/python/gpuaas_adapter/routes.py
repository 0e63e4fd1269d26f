"""The routes of the contract, behind a verified signature and independent of HTTP."""

from __future__ import annotations

import threading
import time
import urllib.parse
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .app import App, Call, PlanCall, action_key, fresh_key
from .contract import (
    CONTRACT_VERSIONS, Failure, HEALTHS, ID_PATTERN, MAX_KEY, MAX_MESSAGE, MAX_REASONS, MAX_TOKEN, MAX_USAGE_RECORDS,
    MAX_WAIT, Refusal, TAKES_AWAY, VERDICTS, bound_work, clip, malformed, missing, refuse,
)
from .engine import Engine
from .log import Log, hide
from .platform import ApiError, Client, trace_id
from .scope import within
from .types import (
    Asked, PlanRequest, Platform, canonical, digest, parse_json, read_action, read_attempt, read_dispatch,
    read_plan, write_time,
)

CALL_SECONDS = 120
"""CALL_SECONDS bounds an action, an observation or a usage query."""
PLAN_SECONDS = 30
_MAX_ACTION_KEYS = 4096

Answer = tuple[int, Any]


@dataclass
class Request:
    """Request is a verified request with its body."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    log: Log

    @property
    def correlation(self) -> str:
        """correlation returns the id that links the logs, audit and events of one request."""
        return self.headers.get("x-correlation-id", "")

    @property
    def traceparent(self) -> str:
        """traceparent returns the W3C trace context of the call; empty when the platform does not trace."""
        return self.headers.get("traceparent", "")

    def query(self, name: str) -> str:
        """query returns the first value of a query parameter."""
        found = urllib.parse.parse_qs(urllib.parse.urlsplit(self.target).query, keep_blank_values=True)
        return found.get(name, [""])[0]

    def json(self) -> Any:
        """json returns the JSON body."""
        if self.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise malformed("Content-Type", "must be application/json")
        return parse_json(self.body)


class Routes:
    """Routes answers the nine requests of the contract."""

    def __init__(self, engine: Engine, apps: list[App], name: str, build: str, graphql_url: str) -> None:
        self._engine, self._apps = engine, {app.slug: app for app in apps}
        self._name, self._build, self._graphql_url = name, build, graphql_url
        self._lock = threading.Lock()
        self._used: OrderedDict[str, str] = OrderedDict()

    def answer(self, request: Request) -> Answer:
        """answer finds the route of a request and returns a status and a body."""
        if self._engine.stopping:
            raise Refusal(503, "UNAVAILABLE", "the adapter is stopping", retryable=True)
        path = urllib.parse.urlsplit(request.target).path
        parts = [urllib.parse.unquote(part) for part in path.split("/")[1:]]
        routes: dict[tuple[str, str], Callable[..., Answer]] = {
            ("GET", "v1/adapter"): self._describe, ("GET", "v1/operations"): self._changes,
            ("PUT", "v1/operations/*"): self._dispatch, ("GET", "v1/operations/*"): self._status,
            ("POST", "v1/operations/*/cancel"): self._cancel, ("POST", "v1/plans"): self._plan,
            ("GET", "v1/instances/*"): self._observe, ("POST", "v1/instances/*/actions/*"): self._act,
            ("GET", "v1/instances/*/usage"): self._usage,
        }
        shape = "/".join("*" if n in (2, 4) else part for n, part in enumerate(parts))
        route = routes.get((request.method, shape))
        if route is None or "" in parts:
            raise missing("route")
        return route(request, *[part for n, part in enumerate(parts) if n in (2, 4)])

    def _app(self, slug: str) -> App:
        app = self._apps.get(slug)
        if app is None:
            raise refuse("UNSUPPORTED_OPERATION", "instance.app", "this adapter does not run the app")
        return app

    def _describe(self, _request: Request) -> Answer:
        return 200, {"contractVersions": CONTRACT_VERSIONS, "name": self._name, "build": self._build,
                     "apps": [app.info() for app in self._apps.values()]}

    def _changes(self, request: Request) -> Answer:
        wait = request.query("wait") or "0"
        if not (wait.isascii() and wait.isdecimal()) or len(wait) > 2 or int(wait) > MAX_WAIT:
            raise malformed("wait", f"must be 0 to {MAX_WAIT} seconds")
        return 200, self._engine.feed.wait(request.query("after"), int(wait))

    def _dispatch(self, request: Request, operation: str) -> Answer:
        raw = request.json()
        if isinstance(raw, dict) and trace_id(request.traceparent):
            raw.setdefault("traceparent", request.traceparent)  # kept, so that a run after a kill continues the trace
        dispatch = read_dispatch(raw, operation)
        hide(dispatch.platform.token)
        if not self._engine.knows(operation):
            self._admit(dispatch)
        status, done = self._engine.dispatch(dispatch, raw)
        return (200 if done else 202), status

    def _admit(self, asked: Asked) -> App:
        """_admit decides whether an operation may begin. What is only removed keeps its config unchecked."""
        app = self._app(asked.instance.app)
        if asked.kind not in app.operations:
            raise refuse("UNSUPPORTED_OPERATION", "kind", "this adapter does not support the operation kind")
        if asked.kind not in TAKES_AWAY:
            app.check_config(dict(asked.instance.config))
        if app.check_function is not None:
            app.check_function(asked)
        return app

    def _status(self, _request: Request, operation: str) -> Answer:
        status = self._engine.feed.get(operation)
        if status is None:
            raise missing("operation")
        return 200, status

    def _cancel(self, request: Request, operation: str) -> Answer:
        attempt = read_attempt(request.json())
        if not ID_PATTERN.fullmatch(operation):
            raise missing("operation")
        return 200, self._engine.cancel(operation, attempt)

    def _plan(self, request: Request) -> Answer:
        asked = read_plan(request.json())
        app = self._apps.get(asked.instance.app)
        wanted = None if app is None else app.leaving_function if asked.choose else app.plan_function
        if app is None or wanted is None:
            raise Refusal(404, "PLANS_UNSUPPORTED", "this adapter does not plan operations of the app")
        call = PlanCall(asked.instance, asked.members, self._client(request, asked.platform), self._log(request, asked),
                        fresh_key("plan"), asked=asked)
        try:
            with within(PLAN_SECONDS):
                self._admit(asked)
                return 200, _planned(app, call, asked)
        except Refusal as error:  # a refusal of the dispatch is the reason of an unsafe verdict
            reason = {"code": error.code, "message": clip(error.message, MAX_MESSAGE), "path": error.path}
            return 200, _bounded({"verdict": "unsafe", "reversible": False, "message": error.message,
                                  "reasons": [{k: v for k, v in reason.items() if v}]})
        except Exception as error:
            raise call_refusal(error) from error

    def _act(self, request: Request, instance: str, name: str) -> Answer:
        body = read_action(request.json(), instance)
        app = self._apps.get(body.instance.app)
        if app is None or name not in app.actions:
            raise missing("action")
        app.check_input(name, body.input)
        key = action_key(instance, name, body.idempotency_key)
        self._use(key, digest(canonical(body.input)))
        log = request.log.bind(instance=instance, action=name)
        call = Call(body.instance, body.members, self._client(request, body.platform), log, f"act.{key}", body)
        try:
            with within(CALL_SECONDS):
                output = app.actions[name](call)
        except Exception as error:
            raise call_refusal(error) from error
        app.check_output(name, output)
        return 200, {"output": output}

    def _use(self, key: str, hash_: str) -> None:
        """_use refuses a key that was used with another input. After a restart, the platform's own task keys refuse
        it."""
        with self._lock:
            if self._used.setdefault(key, hash_) != hash_:
                raise reused()
            if len(self._used) > _MAX_ACTION_KEYS:
                self._used.popitem(last=False)

    def _about(self, request: Request, instance: str, gone: bool) -> tuple[Call, App]:
        """_about returns a call about a known instance, with the access of this request."""
        token = request.headers.get("x-platform-token", "")
        if not 1 <= len(token) <= MAX_TOKEN:
            raise malformed("X-Platform-Token", "is missing or too long")
        known = self._engine.instance(instance, gone)
        if known is None or known.instance.app not in self._apps:
            raise missing("instance")
        client = self._client(request, Platform(self._graphql_url, token))
        call = Call(known.instance, known.members, client, request.log.bind(instance=instance), fresh_key("obs"))
        return call, self._apps[known.instance.app]

    def _observe(self, request: Request, instance: str) -> Answer:
        call, app = self._about(request, instance, gone=False)
        seen: Mapping[str, Any] = {"health": "unknown", "message": "this adapter does not observe", "members": []}
        if app.observe_function is not None:
            try:
                with within(CALL_SECONDS):
                    seen = app.observe_function(call)
            except Exception as error:
                raise call_refusal(error) from error
        if any(one["health"] not in HEALTHS for one in [seen, *seen["members"]]):
            raise ValueError("observe: a health is not in the contract")
        return 200, {"observedAt": write_time(time.time()), **seen, "instanceId": instance}

    def _usage(self, request: Request, instance: str) -> Answer:
        """Usage of a decommissioned instance is returned too: its last records are read after its end."""
        call, app = self._about(request, instance, gone=True)
        after = request.query("after")
        if len(after.encode()) > MAX_KEY:
            raise malformed("after", f"must be at most {MAX_KEY} bytes")
        page: Mapping[str, Any] = {"cursor": after, "records": []}
        if app.usage_function is not None:
            try:
                with within(CALL_SECONDS):
                    page = app.usage_function(call, after)
            except Exception as error:
                raise call_refusal(error) from error
        if len(page["records"]) > MAX_USAGE_RECORDS:
            raise ValueError(f"usage: {len(page['records'])} records are more than {MAX_USAGE_RECORDS}")
        return 200, page

    def _client(self, request: Request, platform: Platform) -> Client:
        """The token of one call lives as long as the call: it is not renewed."""
        return Client(platform, request.correlation, request.log, renews=False, traceparent=request.traceparent)

    def _log(self, request: Request, asked: Asked) -> Log:
        return request.log.bind(instance=asked.instance.id, plan=asked.kind)


def reused() -> Refusal:
    """reused refuses an idempotency key that came with another input."""
    return Refusal(409, "IDEMPOTENCY_KEY_REUSED", "the idempotency key was used with another input", "idempotencyKey")


def _planned(app: App, call: PlanCall, asked: PlanRequest) -> dict[str, Any]:
    if asked.choose is not None and app.leaving_function is not None:
        chosen = [member.id for member in app.leaving_function(call, asked.choose.count)]
        return {**_bounded({"verdict": "safe"}), "chosen": chosen}
    assert app.plan_function is not None
    return _bounded(app.plan_function(call))


def _bounded(plan: Mapping[str, Any]) -> dict[str, Any]:
    """_bounded fills in what a plan omits, and cuts it to the bounds of the contract."""
    verdict, reasons = plan["verdict"], list(plan.get("reasons", []))[:MAX_REASONS]
    if verdict not in VERDICTS:
        raise ValueError(f"plan: verdict {verdict!r} is not in the contract")
    if verdict != "safe" and not reasons:
        raise ValueError(f"plan: verdict {verdict!r} has no reason")
    lost = list(plan.get("workLost", []))
    return {
        "verdict": verdict, "reversible": bool(plan.get("reversible", False)), "reasons": reasons,
        "workLost": bound_work(lost), "workTotal": max(int(plan.get("workTotal", 0)), len(lost)),
        "message": clip(str(plan.get("message", "")), MAX_MESSAGE),
    }


def call_refusal(error: Exception) -> Exception:
    """call_refusal returns what the caller of an action, an observation, a plan or a usage query reads of an error."""
    if isinstance(error, ApiError):
        if error.code == "IDEMPOTENCY_KEY_REUSED":
            return reused()
        return Refusal(422, "PLATFORM_REFUSED", f"{error.code}: {error.message}", retryable=error.retryable)
    if isinstance(error, Failure):
        return Refusal(422, error.code, error.message, retryable=error.retryable)
    if isinstance(error, TimeoutError):
        return Refusal(503, "UNAVAILABLE", "it did not end in time", retryable=True)
    return error
