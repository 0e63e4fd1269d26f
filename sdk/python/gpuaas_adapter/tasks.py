"""Node tasks: what an adapter requests of a node in the sandbox of one member, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from .contract import Failure

Env = Mapping[str, "str | Mapping[str, str]"]
"""Env maps names of variables to values in clear, or to {"sealed": ...} or {"secretRef": ...}."""


@dataclass(frozen=True)
class Task:
    """Task is a kind of node task with its spec, whose fields docs/node-tasks.md lists. Its repr hides the spec, which
    may contain secrets."""

    kind: str
    spec: Mapping[str, Any] = field(repr=False)
    seconds: int = 60

    def within(self, seconds: int) -> Task:
        """within returns the task with another bound on its time, 1 to 3600 seconds."""
        return replace(self, seconds=seconds)


@dataclass(frozen=True)
class TaskResult:
    """TaskResult is how a node task ended."""

    id: str
    state: str
    message: str
    exit_code: int | None
    stdout: str
    stderr: str
    result: Mapping[str, Any]

    @property
    def succeeded(self) -> bool:
        """succeeded reports whether the task did what was requested."""
        return self.state == "SUCCEEDED"

    @property
    def ended(self) -> bool:
        """ended reports whether the task has ended, well or badly."""
        return self.state not in ("PENDING", "RUNNING")

    @property
    def process(self) -> str:
        """process returns the state of an inspected process, such as "running"; empty when not reported."""
        process = self.result.get("process")
        return str(process.get("state", "")) if self.succeeded and isinstance(process, dict) else ""

    @property
    def residue(self) -> int:
        """residue counts what a teardown left: processes, mounts and files."""
        left = self.result.get("residue")
        if not isinstance(left, dict):
            return 0
        return len(left.get("processes") or []) + len(left.get("mounts") or []) + int(left.get("files") or 0)

    def require(self, step: str, member: str) -> TaskResult:
        """require raises a failure that the node's owner has to fix, when the task did not succeed."""
        if self.succeeded:
            return self
        tail = self.stderr.strip()[-800:]
        text = f"step {step} on member {member} ended {self.state}: {self.message}{': ' + tail if tail else ''}"
        raise Failure("NODE_TASK_FAILED", text, "node")


def _spec(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _env(env: Env | None) -> list[dict[str, Any]] | None:
    if env is None:
        return None
    return [{"name": name, **({"value": value} if isinstance(value, str) else value)} for name, value in env.items()]


def run(command: Sequence[str], *, env: Env | None = None, stdin: str | None = None, user: str | None = None,
        work_dir: str | None = None, seconds: int = 60) -> Task:
    """run runs a command to its end, without a shell."""
    return Task("RUN", _spec(command=list(command), env=_env(env), stdin=stdin, user=user, workDir=work_dir), seconds)


def write_file(path: str, content: str | None = None, *, sealed: str | None = None, secret_ref: str | None = None,
               mode: str | None = None, owner: str | None = None) -> Task:
    """write_file writes a file whole or not at all, and makes its folders."""
    return Task("WRITE_FILE", _spec(path=path, content=content, sealed=sealed, secretRef=secret_ref, mode=mode,
                                    owner=owner, makeDirs=True))


def start_process(name: str, command: Sequence[str], *, env: Env | None = None, user: str | None = None,
                  work_dir: str | None = None, restart: str = "never", max_restarts: int = 0, stop_seconds: float = 10,
                  stop_signal: str | None = None) -> Task:
    """start_process starts a supervised process, which must stay in the foreground."""
    again = _spec(policy=restart, maxRestarts=max_restarts, backoffSeconds=1)
    return Task("START_PROCESS", _spec(
        name=name, command=list(command), env=_env(env), user=user, workDir=work_dir, restart=again,
        stopSignal=stop_signal, stopTimeoutSeconds=stop_seconds))


def stop_process(name: str) -> Task:
    """stop_process stops a supervised process; one that is absent is a success."""
    return Task("STOP_PROCESS", {"name": name})


def inspect_process(name: str) -> Task:
    """inspect_process reads the state of a supervised process."""
    return Task("INSPECT_PROCESS", {"name": name})


def probe(*, command: Sequence[str] | None = None, tcp: int | None = None, http: tuple[int, str] | None = None,
          attempts: int = 1, interval: float = 1, timeout: float = 5, seconds: int = 60) -> Task:
    """probe tests several times whether something answers: a command, a TCP port, or a GET of (port, path)."""
    return Task("PROBE", _spec(
        exec=None if command is None else {"command": list(command)}, tcp=None if tcp is None else {"port": tcp},
        http=None if http is None else {"port": http[0], "path": http[1]}, attempts=attempts, intervalSeconds=interval,
        timeoutSeconds=timeout), seconds)


def fetch_artifact(digest: str, path: str, *, placed: str | None = None, mode: str | None = None,
                   owner: str | None = None, seconds: int = 600) -> Task:
    """fetch_artifact downloads an artifact of the manifest to the node, verified against its digest."""
    return Task("FETCH_ARTIFACT", {**_spec(digest=digest, path=path, mode=mode, owner=owner),
                                   **_spec(**{"as": placed})}, seconds)


def cloud_init(user_data: str, instance_id: str, *, sealed: bool = False, hostname: str | None = None,
               seconds: int = 600) -> Task:
    """cloud_init applies cloud-init user data in the member, as on a first boot."""
    data = {"userDataSealed" if sealed else "userData": user_data}
    return Task("CLOUD_INIT", {**data, **_spec(instanceId=instance_id, hostname=hostname)}, seconds)


def residue() -> Task:
    """residue lists everything of the member that is left on the node."""
    return Task("RESIDUE", {})


def teardown(seconds: int = 300) -> Task:
    """teardown stops everything of the member and deletes its sandbox."""
    return Task("TEARDOWN", {}, seconds)
