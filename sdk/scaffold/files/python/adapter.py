"""__NAME__: an adapter. Each member is a process that writes down, every few seconds, that it is alive: change it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Mapping, Sequence

from gpuaas_adapter import App, Asked, Call, Health, Json, Member, Run, check_counts, main, observe_members, tasks

MANIFEST = (Path(__file__).parent / "manifest.json").read_bytes()
FOLDER, PROCESS = "/srv/__NAME__", "worker"

# What runs in a member. GPUAAS_MEMBER_ROOT is empty where the member has a file system of its own.
SCRIPT = """dir="${GPUAAS_MEMBER_ROOT:-}/srv/__NAME__"
while :; do
    date -u +%Y-%m-%dT%H:%M:%SZ >> "$dir/beats"
    sleep "$INTERVAL" & wait $!
done
"""

app = App.from_manifest(MANIFEST)


def shell(line: str) -> list[str]:
    """shell is a command line for a shell."""
    return ["sh", "-c", line]


def bring_up(run: Run, members: Sequence[Member]) -> None:
    """bring_up starts members, several at once: each is a sequence of named steps; the last one proves that it works."""
    interval = str(run.instance.config.get("intervalSeconds", 1))
    start = tasks.start_process(PROCESS, shell(f'exec sh "$GPUAAS_MEMBER_ROOT{FOLDER}/worker.sh"'),
                                env={"INTERVAL": interval}, restart="on_failure", max_restarts=5, stop_seconds=5)

    def one(member: Member) -> None:
        run.member(member.id, "joining", "unknown")
        run.do(member, "script", tasks.write_file(f"{FOLDER}/worker.sh", SCRIPT, mode="0755"))
        run.do(member, "start", start)
        run.do(member, "proof", tasks.probe(command=shell(f'test -s "$GPUAAS_MEMBER_ROOT{FOLDER}/beats"'), attempts=60,
                                            interval=0.5))
        run.member(member.id, "active", "healthy")

    run.each(members, one)


def stop(run: Run, members: Sequence[Member]) -> None:
    """stop stops members. One that does not run is stopped already."""
    run.each(members, lambda member: None if run.attempt(member, "stop", tasks.stop_process(PROCESS)) else None)


def forget(run: Run) -> None:
    """forget takes back what came up of an add that failed; the nodes are the platform's to clean."""
    stop(run, run.targets)
    for member in run.targets:
        run.member(member.id, "failed", "unknown")


@app.check
def check(asked: Asked) -> None:
    """check refuses what cannot be done safely, before anything is done."""
    check_counts(app, asked)


@app.operation("instance.create")
def create(run: Run) -> None:
    """create brings every member up. After a kill it is called again: finished steps answer at once."""
    run.progress("starting", 10, f"starting {len(run.members)} workers")
    bring_up(run, run.members)
    run.evidence("workers", len(run.members))


@app.operation("members.add")
def add(run: Run) -> None:
    """add brings the targets up; when that fails nothing of them stays."""
    with run.undoing(lambda: forget(run)):
        bring_up(run, run.targets)
    run.evidence("added", [member.name for member in run.targets])


@app.operation("member.recover")
def recover(run: Run) -> None:
    """recover brings failed members up again, on the files that they have."""
    bring_up(run, run.targets)
    run.evidence("recovered", [member.name for member in run.targets])


@app.operation("instance.decommission")
def decommission(run: Run) -> None:
    """decommission stops the members and has their nodes prove that nothing is left. It works on an instance that never
    came up, too."""
    run.progress("stopping", 10, f"stopping {len(run.members)} workers")
    if not run.force:
        stop(run, run.members)
    run.teardown(run.members)


@app.observe
def observe(call: Call) -> Mapping[str, Json]:
    """observe says how the members are right now. One whose node does not answer is unknown, never good."""

    def one(member: Member) -> tuple[Health, str]:
        seen = call.ask(member, "inspect", tasks.inspect_process(PROCESS))
        if seen is None or not seen.process:
            return "unknown", "its node did not answer"
        return ("healthy", "it beats") if seen.process == "running" else ("unhealthy", f"its process is {seen.process}")

    return observe_members(call, "workers run", one)


@app.action("__NAME__.read")
def read(call: Call) -> Mapping[str, Json]:
    """read is the last beats of every member."""
    tail = tasks.run(shell(f'tail -n {call.input.get("limit", 1)} "$GPUAAS_MEMBER_ROOT{FOLDER}/beats"'))
    return {"beats": [beat for member in call.of("worker") for beat in call.do(member, "tail", tail).stdout.split()]}


if __name__ == "__main__":
    sys.exit(main(name="__NAME__", manifest=MANIFEST, make=lambda _folder: app, build="0.1.0"))
