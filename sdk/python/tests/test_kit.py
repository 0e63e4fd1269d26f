"""The kit keeps the contract: a dispatched operation happens once, also across a restart."""

from __future__ import annotations

import base64
import io
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Mapping

from nacl.public import SealedBox
from nacl.signing import SigningKey

from gpuaas_adapter import PosixIdentity, Refusal, tasks
from gpuaas_adapter.log import new_log
from gpuaas_adapter.testing import succeed
from gpuaas_adapter.types import read_action

from .sample import KitTest, pulse


class Held:
    """Held is a node that leaves START_PROCESS running until the test releases it."""

    def __init__(self) -> None:
        self.go, self.reached = threading.Event(), threading.Event()

    def __call__(self, member: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if kind == "START_PROCESS" and not self.go.is_set():
            self.reached.set()
            return None
        return succeed(member, kind, spec)


class OperationTest(KitTest):
    def test_a_dispatch_is_done_once_however_often_it_comes(self) -> None:
        adapter, body = self.start(), self.create()
        self.assertEqual(202, self.put(adapter, body)[0])
        status = self.platform.await_end(adapter, "op_1")
        self.assertEqual("succeeded", status["state"], status)
        self.assertEqual({"once": "made"}, status["evidence"])
        moved = self.create(deadline="2030-01-01T00:00:00Z", correlationId="other", extra=1)
        moved["members"][0]["cordoned"] = True
        self.assertEqual((200, status), self.put(adapter, moved))
        self.assertEqual(4, len(self.platform.tasks))
        sealed = self.platform.tasks["mem_0", "op_1.1.mem_0.secret"]["input"]["spec"]["sealed"]
        opened = json.loads(SealedBox(self.platform.sealing).decrypt(base64.b64decode(sealed)))
        self.assertEqual({"instanceId": "ins_1", "value": base64.b64encode(b"beat").decode()}, opened)

    def test_what_an_operation_calls_for_belongs_to_the_trace_that_it_was_dispatched_in(self) -> None:
        at = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        adapter = self.start()
        raw = json.dumps(self.create())
        self.assertEqual(202, self.platform.call(adapter, "PUT", "/v1/operations/op_1", raw.encode(), traceparent=at)[0])
        self.platform.await_end(adapter, "op_1")
        self.assertEqual({at}, set(self.platform.traces))

    def test_another_specification_and_a_lower_attempt_are_refused(self) -> None:
        adapter = self.start()
        self.put(adapter, self.create(attempt=2))
        other = self.create(attempt=1, change={"unknown": 1})
        self.assertEqual((409, "BODY_MISMATCH"), (lambda a: (a[0], a[1]["code"]))(self.put(adapter, other)))
        code, error = self.put(adapter, self.create(attempt=1))
        self.assertEqual((409, "STALE_FENCE", "attempt"), (code, error["code"], error["path"]))

    def test_what_was_killed_goes_on_with_the_same_tasks_and_the_same_bytes(self) -> None:
        held = Held()
        self.platform.node = held
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertTrue(held.reached.wait(30))
        killed = Path(self.enterContext(tempfile.TemporaryDirectory())) / "state"
        shutil.copytree(self.state, killed)  # what a killed process leaves behind
        held.go.set()
        self.platform.await_end(adapter, "op_1")
        adapter = self.start(killed)
        status = self.platform.await_end(adapter, "op_1")
        self.assertEqual("succeeded", status["state"], "a step with other bytes would be refused")
        self.assertEqual(4, len(self.platform.tasks))
        self.assertEqual(200, self.platform.call(adapter, "GET", "/v1/instances/ins_1")[0])

    def test_a_stop_parks_the_run_and_cancels_no_task(self) -> None:
        held = Held()
        self.platform.node = held
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertTrue(held.reached.wait(30))
        adapter.stop()
        self.assertNotIn("CancelNodeTask", [name for name, _, _ in self.platform.calls])
        held.go.set()
        self.assertEqual("succeeded", self.platform.await_end(self.start(), "op_1")["state"])

    def test_a_cancel_stops_the_run_and_its_tasks(self) -> None:
        held = Held()
        self.platform.node = held
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertTrue(held.reached.wait(30))
        answer = self.platform.call(adapter, "POST", "/v1/operations/op_1/cancel", {"attempt": 1})
        self.assertEqual((200, "canceled"), (answer[0], answer[1]["outcome"]))
        self.assertIn("CancelNodeTask", [name for name, _, _ in self.platform.calls])
        self.assertEqual("CANCELED", self.platform.await_end(adapter, "op_1")["error"]["code"])

    def test_a_cancel_of_an_unknown_operation_leaves_a_tombstone_on_disk(self) -> None:
        adapter = self.start()
        answer = self.platform.call(adapter, "POST", "/v1/operations/op_1/cancel", {"attempt": 1})[1]
        self.assertEqual(("unknown", True), (answer["outcome"], answer["tombstone"]))
        adapter.stop()
        adapter = self.start()
        code, status = self.put(adapter, self.create())
        self.assertEqual((200, "canceled"), (code, status["state"]))
        self.assertEqual({}, self.platform.tasks)
        self.assertEqual(404, self.platform.call(adapter, "GET", "/v1/instances/ins_1")[0])

    def test_the_deadline_ends_a_run(self) -> None:
        self.platform.node = Held()
        adapter = self.start()
        soon = self.platform.dispatch("op_1", "instance.create", self.app)
        soon["deadline"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        self.put(adapter, soon)
        error = self.platform.await_end(adapter, "op_1")["error"]
        self.assertEqual(("DEADLINE_EXCEEDED", "adapter", True), (error["code"], error["owner"], error["retryable"]))

    def test_force_with_a_higher_attempt_begins_again(self) -> None:
        held = Held()
        self.platform.node = held
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertTrue(held.reached.wait(30))
        self.put(adapter, self.create(attempt=2, force=True))
        held.go.set()
        status = self.platform.await_end(adapter, "op_1")
        self.assertEqual(("succeeded", 2), (status["state"], status["attempt"]))
        self.assertIn(("mem_0", "op_1.2.mem_0.start"), self.platform.tasks)

    def test_a_forced_teardown_passes_over_a_node_that_is_away(self) -> None:
        adapter = self.start()
        body = self.platform.dispatch("op_2", "instance.decommission", self.app, force=True)
        body["members"][1]["node"]["reachable"] = False
        self.put(adapter, body)
        status = self.platform.await_end(adapter, "op_2")
        self.assertEqual({"notTornDown": ["mem_1"], "residue": {"mem_0": 0}}, status["evidence"])

    def test_any_name_of_a_step_makes_a_key_that_the_platform_takes(self) -> None:
        @self.app.operation("member.label")
        def label(run: Any) -> None:
            for step in ("with spaces", "ä", "x" * 200):
                run.look(run.members[0], step, tasks.run(["true"]))

        adapter = self.start()
        self.put(adapter, self.platform.dispatch("op_1", "member.label", self.app))
        self.assertEqual("succeeded", self.platform.await_end(adapter, "op_1")["state"])
        keys = [key for _, key in self.platform.tasks]
        self.assertEqual([], [key for key in keys if not key.isascii() or " " in key or len(key) > 128])
        self.assertEqual(3, len({key.rsplit(".", 1)[0] for key in keys}))

    def test_a_failed_task_fails_the_operation_with_the_nodes_words(self) -> None:
        self.platform.node = lambda *_: {"state": "FAILED", "message": "exit 1", "stderr": "no such file"}
        adapter = self.start()
        self.put(adapter, self.create())
        error = self.platform.await_end(adapter, "op_1")["error"]
        self.assertEqual(("NODE_TASK_FAILED", "node"), (error["code"], error["owner"]))
        self.assertIn("no such file", error["message"])
        self.platform.node = succeed
        self.put(adapter, self.create(attempt=2))
        self.assertEqual("succeeded", self.platform.await_end(adapter, "op_1")["state"])

    def test_an_unexpected_error_stays_in_the_log(self) -> None:
        @self.app.operation("member.label")
        def label(_run: Any) -> None:
            raise RuntimeError("in /home/of/somebody")

        adapter = self.start()
        self.put(adapter, self.platform.dispatch("op_1", "member.label", self.app))
        error = self.platform.await_end(adapter, "op_1")["error"]
        self.assertEqual(("INTERNAL", "the adapter had an internal error"), (error["code"], error["message"]))


class PlatformTest(KitTest):
    def test_a_call_that_did_not_get_through_is_repeated(self) -> None:
        self.platform.failures = [503, 429, 500]
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertEqual("succeeded", self.platform.await_end(adapter, "op_1")["state"])
        self.assertEqual([], self.platform.failures)
        self.assertEqual(4, len(self.platform.tasks))

    def test_a_token_is_renewed_before_its_end(self) -> None:
        self.platform.token_seconds = 30
        adapter = self.start()
        self.put(adapter, self.create())
        self.assertEqual("succeeded", self.platform.await_end(adapter, "op_1")["state"])
        self.assertIn("renewed-token-op_1", {token for _, token, _ in self.platform.calls})

    def test_a_refusal_for_good_is_the_platforms_failure(self) -> None:
        self.platform.node = lambda *_: (_ for _ in ()).throw(AssertionError)
        adapter = self.start()
        self.platform.tasks["mem_0", "op_1.1.mem_0.secret"] = {"input": "another"}
        self.put(adapter, self.create(members=1))
        error = self.platform.await_end(adapter, "op_1")["error"]
        self.assertEqual(("PLATFORM_REFUSED", "platform"), (error["code"], error["owner"]))

    def test_no_secret_is_in_the_log(self) -> None:
        out = io.StringIO()
        adapter = self.platform.adapter([pulse()], self.state, new_log("debug", out))
        adapter.start()
        self.addCleanup(adapter.stop)
        self.put(adapter, self.create())
        self.platform.await_end(adapter, "op_1")
        self.assertIn('"correlation_id": "cor-1"', out.getvalue())
        self.assertNotIn("token-op_1", out.getvalue())
        adapter.server.log.info("an author wrote token-op_1 and Bearer abcdef.ghijkl; no bearer token")
        last = json.loads(out.getvalue().splitlines()[-1])
        self.assertEqual("an author wrote [hidden] and [hidden]; no bearer token", last["message"])


class RouteTest(KitTest):
    def test_a_key_of_an_action_serves_one_input(self) -> None:
        adapter = self.start()
        body = {**self.create(), "input": {"limit": 1}, "idempotencyKey": "k", "requester": {"id": "u", "kind": "user"}}
        path = "/v1/instances/ins_1/actions/pulse.read"
        self.assertEqual((200, {"output": {"beats": ["", ""]}}), self.platform.call(adapter, "POST", path, body))
        made = len(self.platform.tasks)
        self.assertEqual(200, self.platform.call(adapter, "POST", path, body)[0])
        self.assertEqual(made, len(self.platform.tasks), "a repeat is the same tasks")
        code, error = self.platform.call(adapter, "POST", path, {**body, "input": {"limit": 2}})
        self.assertEqual((409, "IDEMPOTENCY_KEY_REUSED"), (code, error["code"]))
        code, error = self.platform.call(adapter, "POST", path, {**body, "input": {"limit": "x"}})
        self.assertEqual((422, "input.limit"), (code, error["path"]))

    def test_the_account_of_a_requester_is_told_where_it_is_sent(self) -> None:
        who = {"id": "u", "kind": "user"}
        body = {**self.create(), "input": {}, "idempotencyKey": "k", "requester": who}
        self.assertIsNone(read_action(body, "ins_1").requester_posix)
        body["requester"] = {**who, "posix": {"name": "ada", "uid": 1004, "gid": 1004}}
        self.assertEqual(PosixIdentity("ada", 1004, 1004), read_action(body, "ins_1").requester_posix)
        body["requester"] = {**who, "posix": {"name": "ada", "uid": "0", "gid": 1004}}
        with self.assertRaises(Refusal) as refused:
            read_action(body, "ins_1")
        self.assertEqual("requester.posix.uid", refused.exception.path)

    def test_a_plan_is_bounded_and_a_refusal_is_its_reason(self) -> None:
        adapter, body = self.start(), self.create()
        code, plan = self.platform.call(adapter, "POST", "/v1/plans", body)
        self.assertEqual((200, 100, 200, 200), (code, len(plan["workLost"]), plan["workTotal"],
                                                len(plan["workLost"][0]["name"])))
        body["instance"]["components"] = [{"key": "beater", "count": 9}]
        plan = self.platform.call(adapter, "POST", "/v1/plans", body)[1]
        self.assertEqual(("unsafe", "ABOVE_MAXIMUM"), (plan["verdict"], plan["reasons"][0]["code"]))

    def test_malformed_bodies_are_refused_by_path(self) -> None:
        adapter = self.start()
        spoilt: dict[str, Callable[[Any], Any]] = {
            "members[1].id": lambda b: b["members"][1].update(id="mem_0"),
            "targets[0]": lambda b: b.update(targets=["mem_9"]), "attempt": lambda b: b.update(attempt=True),
            "deadline": lambda b: b.pop("deadline"), "platform.token": lambda b: b["platform"].pop("token"),
        }
        for path, spoil in spoilt.items():
            body = self.create()
            spoil(body)
            code, error = self.put(adapter, body)
            self.assertEqual((400, path), (code, error["path"]))
        for raw in (b"{", b'{"attempt": NaN}', b"[" * 100_000, b'"text"'):
            self.assertEqual(400, self.platform.call(adapter, "PUT", "/v1/operations/op_1", raw)[0])
        self.assertEqual({}, self.platform.tasks)

    def test_the_feed_goes_on_after_a_restart(self) -> None:
        adapter = self.start()
        cursor = self.platform.call(adapter, "GET", "/v1/operations")[1]["cursor"]
        self.put(adapter, self.create())
        self.platform.await_end(adapter, "op_1")
        adapter.stop()
        adapter = self.start()
        page = self.platform.call(adapter, "GET", f"/v1/operations?after={cursor}")[1]
        self.assertEqual(["op_1"], [status["operationId"] for status in page["operations"]])
        self.assertEqual(400, self.platform.call(adapter, "GET", "/v1/operations?after=nonsense")[0])
        self.assertEqual(400, self.platform.call(adapter, "GET", "/v1/operations?wait=31")[0])

    def test_a_decommissioned_instance_is_known_to_usage_alone(self) -> None:
        adapter = self.start()
        self.put(adapter, self.create())
        self.platform.await_end(adapter, "op_1")
        self.put(adapter, self.platform.dispatch("op_2", "instance.decommission", self.app))
        self.platform.await_end(adapter, "op_2")
        self.assertEqual(404, self.platform.call(adapter, "GET", "/v1/instances/ins_1")[0])
        self.assertEqual((200, {"cursor": "", "records": []}),
                         self.platform.call(adapter, "GET", "/v1/instances/ins_1/usage"))


class SignatureTest(KitTest):
    def test_only_the_platforms_word_for_this_request_counts(self) -> None:
        adapter, target = self.start(), "/v1/adapter"
        wrong: dict[str, dict[str, Any]] = {
            "issuer": {"iss": "http://other"}, "audience": {"aud": "other"}, "expired": {"iat": 1, "exp": 61},
            "future": {"iat": int(time.time()) + 300, "exp": int(time.time()) + 360}, "method": {"htm": "PUT"},
            "life": {"exp": int(time.time()) + 3600}, "target": {"htu": "/v1/plans"}, "body": {"bd": "x"},
            "jti": {"jti": ""},
        }
        for what, claims in wrong.items():
            token = self.platform.sign("GET", target, b"", **claims)
            code, error = self.platform.call(adapter, "GET", target, token=token)
            self.assertEqual((401, "UNAUTHENTICATED"), (code, error["code"]), what)
        token = self.platform.sign("GET", target, b"")
        self.assertEqual(401, self.platform.call(adapter, "GET", target, token=token[:-4] + "AAAA")[0])
        self.assertEqual(200, self.platform.call(adapter, "GET", target, token=token)[0])

    def test_a_rotated_key_is_fetched(self) -> None:
        adapter = self.start()
        self.assertEqual(200, self.platform.call(adapter, "GET", "/v1/adapter")[0])
        self.platform.key, self.platform.kid = SigningKey.generate(), "key-2"
        keys = adapter.server.verifier._keys
        keys._tried = float("-inf")  # type: ignore[attr-defined]
        self.assertEqual(200, self.platform.call(adapter, "GET", "/v1/adapter")[0])
