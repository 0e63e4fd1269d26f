"""The small app of the kit's own tests."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

from gpuaas_adapter import App, Call, PlanCall, Run, check_counts, observe_members, plan_of_work, seal, tasks
from gpuaas_adapter.controller import Controller
from gpuaas_adapter.testing import FakePlatform

MANIFEST = {
    "app": "pulse", "version": "1.0.0",
    "components": [{"key": "beater", "displayName": "Beater", "min": 1, "max": 4, "default": 2}],
    "configSchema": {"type": "object", "additionalProperties": False,
                     "properties": {"every": {"type": "integer", "minimum": 1}}},
    "actions": [{"name": "pulse.read", "displayName": "Read", "permissionKey": "apps.queue.read", "risk": "read",
                 "inputSchema": {"type": "object", "additionalProperties": False,
                                 "properties": {"limit": {"type": "integer"}}},
                 "outputSchema": {"type": "object", "required": ["beats"]}}],
    "usageDimensions": [{"name": "beats", "unit": "count"}],
}


def pulse() -> App:
    """pulse is an app with two operations, an action, an observation and a plan."""
    app = App(MANIFEST)
    app.check(lambda asked: check_counts(app, asked))

    @app.operation("instance.create")
    def create(run: Run) -> None:
        run.progress("starting", 10, "starting")

        def one(member: Any) -> None:
            sealed = seal(member.node.sealing_key, run.instance.id, b"beat")
            run.do(member, "secret", tasks.write_file("/srv/secret", sealed=sealed))
            run.do(member, "start", tasks.start_process("beater", ["beat"]))
            run.member(member.id, "active", "healthy")

        run.each(run.of("beater"), one)
        run.evidence("once", run.once("name", lambda: "made"))

    @app.operation("instance.decommission")
    def decommission(run: Run) -> None:
        run.commit()
        run.teardown(run.of("beater"))

    @app.observe
    def observe(call: Call) -> Any:
        def one(member: Any) -> Any:
            seen = call.ask(member, "inspect", tasks.inspect_process("beater"))
            return ("healthy", "it beats") if seen is not None and seen.process == "running" else ("unknown", "silent")

        return observe_members(call, "beaters beat", one)

    @app.action("pulse.read")
    def read(call: Call) -> Any:
        return {"beats": [call.do(m, "tail", tasks.run(["tail"])).stdout for m in call.of("beater")]}

    @app.plan
    def plan(_call: PlanCall) -> Any:
        work = {"kind": "job", "id": "1", "name": "x" * 500, "owner": "", "since": "2026-01-01T00:00:00Z"}
        return plan_of_work([work] * 200, [], lost=True, reversible=False, what="jobs")

    return app


class KitTest(unittest.TestCase):
    """KitTest has a platform, a state folder, and adapters that are stopped at the end."""

    def setUp(self) -> None:
        self.platform = self.enterContext(FakePlatform())
        self.state = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.app = pulse()

    def start(self, state: Path | None = None) -> Controller:
        """start starts the adapter over a state folder."""
        adapter = self.platform.adapter([self.app], state or self.state)
        adapter.start()
        self.addCleanup(adapter.stop)
        return adapter

    def put(self, adapter: Controller, body: Any) -> tuple[int, Any]:
        """put dispatches an operation."""
        return self.platform.call(adapter, "PUT", f"/v1/operations/{body['operationId']}", body)

    def create(self, operation: str = "op_1", **other: Any) -> dict[str, Any]:
        """create is a dispatch of a create."""
        return self.platform.dispatch(operation, "instance.create", self.app, **other)
