"""redkeep: Redis with a primary and replicas that take over, as an adapter on the kit gpuaas_adapter."""

from __future__ import annotations

import sys
import time
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Mapping, Sequence

from gpuaas_adapter import (
    App, Ask, Asked, Call, Dispatch, Failure, Health, Json, Keys, Member, PlanCall, Run, Task, TaskResult, UsageLog,
    check_counts, is_unreachable, main, observe_members, pause, plan_of_work, refuse, seal, tasks, write_time,
)

HERE = Path(__file__).parent
MANIFEST = (HERE / "manifest.json").read_bytes()
SCRIPT = (HERE / "redkeep.sh").read_text()
FOLDER, PROCESS = "/srv/redkeep", "redis"
GUARD = f'f="$GPUAAS_MEMBER_ROOT{FOLDER}/redkeep.sh"; test -f "$f" || exit 0; exec sh "$f" "$@"'

app = App.from_manifest(MANIFEST)
own = SimpleNamespace()  # what the adapter keeps on its disk beside the journal: keys and usage


def verb(*words: str, seconds: int = 10) -> Task:
    """verb runs a verb of the script. A script that was never written has done nothing: the task prints nothing."""
    return tasks.run(["sh", "-c", GUARD, "redkeep", *words], seconds=seconds)


def seen(ask: Ask, member: Member) -> dict[str, str]:
    """seen returns what a server reports of itself; empty when it does not answer."""
    result = ask(member, "state", verb("state"))
    lines = result.stdout.splitlines() if result is not None and result.succeeded else []
    return dict(line.split("=", 1) for line in lines)


def serving(members: Sequence[Member]) -> list[Member]:
    """serving leaves out members that failed: they come back when they are recovered."""
    return sorted((m for m in members if m.status != "failed"), key=lambda m: m.index)


def launch(run: Run, member: Member, leader: Member | None, version: str, config: Json, of: str = "") -> None:
    """launch starts a server with these settings, whatever it ran with before, as the primary or as a replica."""
    disk, memory = "yes" if config.get("appendOnly", True) else "no", config.get("memoryMiB", 64)
    settings = (f"# version {version}\nbind {member.host}\nreplica-announce-ip {member.host}\n"
                f"maxmemory {memory}mb\nappendonly {disk}\n")
    words = "".join(f"{who} {own.keys.password(run.instance.id, who)}\n" for who in ("keeper", "client"))
    sealed = seal(member.node.sealing_key, run.instance.id, words.encode())
    first = 6379 if member.address else 20000 + zlib.crc32(member.id.encode()) % 12000  # others may share this address
    where = ["lead"]
    if leader is not None:  # a step, so that a resumed launch follows to the same place
        where = ["follow", leader.host, run.do(leader, of + "port", verb("port", "0")).stdout.strip()]
    serve = ["sh", "-c", f'exec sh "$GPUAAS_MEMBER_ROOT{FOLDER}/redkeep.sh" serve']
    for step, task in {
        "stop": tasks.stop_process(PROCESS),
        "script": tasks.write_file(f"{FOLDER}/redkeep.sh", SCRIPT, mode="0755"),
        "settings": tasks.write_file(f"{FOLDER}/settings", settings),
        "secret": tasks.write_file(f"{FOLDER}/secret", sealed=sealed, mode="0600"),
        "port": verb("port", str(first)),
        "fresh": verb("fresh"),
        "place": verb(*where),
        "start": tasks.start_process(PROCESS, serve, restart="on_failure", max_restarts=5, stop_seconds=5),
        "up": tasks.probe(command=["sh", "-c", GUARD, "redkeep", "up"], attempts=150, interval=0.2),
    }.items():
        run.do(member, of + step, task)


def bring_up(run: Run, members: Sequence[Member], leader: Member | None) -> None:
    """bring_up starts servers, several at once, and reports each as active."""

    def one(member: Member) -> None:
        run.member(member.id, "joining", "unknown")
        launch(run, member, leader, run.instance.version, run.instance.config)
        run.member(member.id, "active", "healthy", {"name": member.name, "address": member.host})

    run.each(members, one)


def forget(run: Run, members: Sequence[Member]) -> None:
    """forget stops the servers that a failed operation started; the platform cleans the nodes."""
    for member in members:
        run.attempt(member, "forget", tasks.stop_process(PROCESS))
        run.member(member.id, "failed", "unknown")


def answering(run: Run, without: Sequence[Member]) -> dict[Member, dict[str, str]]:
    """answering returns what each other server reports of itself."""
    return {m: said for m in serving(run.members) if m not in without and (said := seen(run.ask, m))}


def primary(run: Run, without: Sequence[Member] = (), promote: bool = False) -> Member | None:
    """primary is the server that leads now. With promote, a replica takes over where no server leads."""
    states = answering(run, without)
    leads = [m for m, s in states.items() if s["role"] == "master"]
    if leads:
        return max(leads, key=lambda m: int(states[m]["connected_slaves"]))
    if not promote or not states:
        return None
    best = max(states, key=lambda m: int(states[m]["slave_repl_offset"]))
    return crown(run, best, states)


def crown(run: Run, new: Member, states: Mapping[Member, Mapping[str, str]]) -> Member:
    """crown makes a server lead, and all others that answer follow it."""
    run.do(new, "lead", verb("lead"))
    for member in states:
        if member is not new:
            run.attempt(member, f"follow.{new.id}", verb("follow", new.host, states[new]["port"]))
    return new


def hand_over(run: Run, leaving: Sequence[Member]) -> Member | None:
    """hand_over makes another server lead when the primary is among those that leave; it returns who leads then."""
    leader = primary(run)
    if leader is not None and leader not in leaving:
        return leader
    states = answering(run, leaving)
    ready = [m for m, s in states.items() if s.get("master_link_status") == "up"]
    if leader is None or not ready:
        return primary(run, leaving, promote=run.force or leader is None)
    new = max(ready, key=lambda m: (m.status != "drained", int(states[m]["slave_repl_offset"])))
    done = run.attempt(leader, f"handover.{new.id}", verb("handover", new.host, states[new]["port"], seconds=40))
    if not done.succeeded and not run.force:
        raise Failure("HANDOVER_FAILED", f"{leader.name} did not hand over to {new.name}: {done.stderr[-200:]}", "node")
    return crown(run, new, states)


def work_of(member: Member, result: TaskResult) -> list[dict[str, Json]]:
    """work_of reads a list of clients, the oldest first."""
    found = [dict(word.split("=", 1) for word in line.split(" ") if "=" in word) for line in result.stdout.splitlines()]
    return [{"kind": "client", "id": one["id"], "name": one["name"], "memberId": member.id, "owner": one["user"],
             "since": write_time(time.time() - int(one["age"])), "message": f"connected to {member.name}"}
            for one in sorted((o for o in found if "id" in o), key=lambda o: -int(o["age"]))]


def empty(run: Run, members: Sequence[Member]) -> None:
    """empty hands over, lets no new client in, and waits until none is left; with force it cuts them off instead."""
    for member in members:
        run.member(member.id, "draining", "unknown" if run.force else "healthy")
    if run.force:
        evict(run, members)
        hand_over(run, members)
        return
    hand_over(run, members)
    waits: dict[str, list[dict[str, Json]]] = {}

    def one(member: Member) -> None:
        run.do(member, "shut", verb("shut", f"drain-{run.op.id}"))
        known = -1
        while known != 0:
            result = run.look(member, "work", verb("change", str(known), "15", seconds=30))
            if not result.succeeded:  # a server that does not answer may have clients: only an answer ends the wait
                known = -1
                pause(2)
                continue
            waits[member.id] = work_of(member, result)
            known = len(waits[member.id])
            run.waits_for([work for some in list(waits.values()) for work in some])
            if known:
                run.progress("waiting", 40, f"{known} clients are connected to {member.name}")

    run.each(members, one)
    run.evidence("drained", {"clientsLeft": 0, "servers": [m.name for m in members]})


def evict(run: Run, members: Sequence[Member]) -> None:
    """evict cuts clients off; the evidence names them, and the members that did not answer."""
    answers = {m: run.ask(m, "evict", verb("evict")) for m in members}
    run.evidence("workLost", [work["id"] for m, result in answers.items() if result for work in work_of(m, result)])
    run.evidence("notAsked", [m.name for m, result in answers.items() if result is None])


def reopen(run: Run) -> None:
    """reopen opens the servers that this operation has shut, and none that another caller has shut."""
    for member in run.targets:
        run.attempt(member, "reopen", verb("reopen", f"drain-{run.op.id}"))
        run.member(member.id, "active", "healthy")


def leave(run: Run, members: Sequence[Member]) -> None:
    """leave reads the counters a last time, stops the servers, and has their nodes prove that nothing is left."""
    meter(run.instance.id, members, run.ask)
    for member in members:
        try:
            run.attempt(member, "stop", tasks.stop_process(PROCESS))
        except Failure as failure:
            if not is_unreachable(failure):
                raise
    run.teardown(members)


@app.operation("instance.create")
def create(run: Run) -> None:
    """create starts the server of the lowest index as the primary, and then the others as its replicas."""
    first, *others = run.of("server")
    run.progress("starting", 10, f"starting {len(others) + 1} servers")
    bring_up(run, [first], None)
    bring_up(run, others, first)
    run.evidence("servers", len(others) + 1)


@app.operation("members.add")
def add(run: Run) -> None:
    """add starts the targets as replicas; when that fails, they are stopped."""
    with run.undoing(lambda: forget(run, run.targets)):
        bring_up(run, run.targets, primary(run, run.targets))
    run.evidence("added", [m.name for m in run.targets])


@app.operation("member.drain")
def drain(run: Run) -> None:
    """drain empties the targets; canceled, they are back in service."""
    with run.undoing(lambda: reopen(run)):
        empty(run, run.targets)
    for member in run.targets:
        run.member(member.id, "drained", "healthy" if seen(run.ask, member) else "unknown")


@app.operation("member.remove")
def remove(run: Run) -> None:
    """remove empties the targets, and takes them away."""
    with run.undoing(lambda: reopen(run)):
        empty(run, run.targets)
        run.commit()
    leave(run, run.targets)


@app.operation("member.replace")
def replace(run: Run) -> None:
    """replace starts the new server, and removes the old one when it has joined."""
    new = [m for m in run.members if m.id == run.change["replacementId"]]
    with run.undoing(lambda: forget(run, new)), run.undoing(lambda: reopen(run)):
        bring_up(run, new, primary(run, new, promote=True))
        empty(run, run.targets)
        run.commit()
    leave(run, run.targets)


@app.operation("member.recover")
def recover(run: Run) -> None:
    """recover starts the targets on the data that they have, as replicas where another server leads."""
    leader, targets = primary(run, run.targets, promote=True), run.targets
    if leader is None:
        leader, targets = targets[0], targets[1:]
        bring_up(run, [leader], None)
    bring_up(run, targets, leader)
    run.evidence("recovered", [m.name for m in run.targets])


@app.operation("instance.upgrade", "instance.rollback")
def change(run: Run) -> None:
    """change restarts replicas first, and the primary last, after it has handed over. When it fails the changed servers
    are changed back."""
    members, before = serving(run.members), run.change["from"]
    changed: list[Member] = []

    def back() -> None:
        for member in changed:
            launch(run, member, hand_over(run, [member]), before["version"], before.get("config") or {}, "back.")
            run.member(member.id, "active", "healthy")

    silent = [m.name for m in members if not seen(run.ask, m)]
    if silent:
        raise Failure("NODE_UNREACHABLE", f"{', '.join(silent)} do not answer; nothing was changed", "node")
    leader = primary(run)
    with run.undoing(back):
        for n, member in enumerate(sorted(members, key=lambda m: m is leader)):
            run.progress(f"changing {member.name}", 10 + 80 * n // len(members), f"{n} of {len(members)} are changed")
            changed.insert(0, member)
            leads = hand_over(run, [member]) if len(members) > 1 else None
            launch(run, member, leads, run.instance.version, run.instance.config)
            run.member(member.id, "drained" if member.status == "drained" else "active", "healthy")
    run.evidence("versions", {m.name: seen(run.ask, m).get("runs", "unknown") for m in members})


@app.operation("member.cordon", "member.uncordon")
def cordon(run: Run) -> None:
    """cordon lets no new client in, and connected clients go on; uncordon opens the server, whatever shut it."""
    for member in run.targets:
        run.do(member, "door", verb("shut", "cordon") if run.dispatch.kind == "member.cordon" else verb("unbolt"))
        if run.dispatch.kind == "member.uncordon" and member.status == "drained":
            run.member(member.id, "active", "healthy")
    run.evidence("door", [m.name for m in run.targets])


@app.operation("member.label")
def label(run: Run) -> None:
    """label writes the labels where the member's own programs can read them."""
    text = "".join(f"{name}={value}\n" for name, value in sorted(run.change.get("labels", {}).items()))
    for member in run.targets:
        run.do(member, "labels", tasks.write_file(f"{FOLDER}/labels", text))
    run.evidence("labels", run.change.get("labels", {}))


@app.operation("instance.decommission")
def decommission(run: Run) -> None:
    """decommission waits for no client. It also works on an instance that never started."""
    run.progress("stopping", 10, f"stopping {len(run.members)} servers")
    evict(run, run.members)
    leave(run, run.members)


@app.check
def check(asked: Asked) -> None:
    """check refuses an operation that cannot be done safely."""
    check_counts(app, asked)
    change = asked.change if isinstance(asked.change, dict) else {}
    if asked.kind == "member.replace" and isinstance(asked, Dispatch):
        if change.get("replacementId") not in [m.id for m in asked.members]:
            raise refuse("REPLACEMENT_UNKNOWN", "change.replacementId", "is not one of members")


@app.observe
def observe(call: Call) -> Mapping[str, Json]:
    """observe reports which server leads, and which replicas are linked to it."""

    def one(member: Member) -> tuple[Health, str]:
        found = seen(call.ask, member)
        if not found:
            process = call.ask(member, "inspect", tasks.inspect_process(PROCESS))
            if process is None:
                return "unknown", "its node does not answer"
            return "unhealthy", f"its process is {process.process}"
        if found["role"] == "master":
            return "healthy", "the primary"
        if found["master_link_status"] != "up":
            return "degraded", "a replica without its primary"
        return "healthy", "a replica"

    return observe_members(call, "servers run", one)


@app.plan
def plan(call: PlanCall) -> Mapping[str, Json]:
    """plan counts only clients that would really be cut off: a drain waits for them."""
    kind, leaves = call.asked.kind, ("member.remove", "member.replace", "member.drain")
    if kind not in (*leaves, "instance.decommission", "instance.upgrade", "instance.rollback"):
        return {"verdict": "safe", "reversible": True, "message": "no client is cut off"}
    members = call.targets if kind in leaves else call.members
    answers = {m: call.ask(m, "clients", verb("clients")) for m in members}
    work = [one for m, result in answers.items() if result for one in work_of(m, result)]
    return plan_of_work(work, [m.name for m, result in answers.items() if result is None], what="clients",
                        lost=call.asked.force or kind not in leaves, reversible=kind not in leaves[:2])


@app.leaving
def leaving(call: PlanCall, count: int) -> list[Member]:
    """leaving chooses the replicas of the highest index first, and the primary last."""
    leads = {m.id for m in call.targets if seen(call.ask, m).get("role") == "master"}
    return sorted(call.targets, key=lambda m: (m.id in leads, -m.index))[:count]


@app.usage
def usage(call: Call, after: str) -> Mapping[str, Json]:
    """usage counts the commands since the last reading."""
    if own.usage.due(call.instance.id):
        meter(call.instance.id, call.members, call.ask)
    page: Mapping[str, Json] = own.usage.page(call.instance.id, after)
    return page


def meter(instance: str, members: Sequence[Member], ask: Ask) -> None:
    """meter reads the servers' counters."""
    for member in members:
        if found := seen(ask, member):
            own.usage.count(instance, member.id, "commands", found["run_id"], int(found["total_commands_processed"]))


@app.action("redkeep.status")
def status(call: Call) -> Mapping[str, Json]:
    """status returns what each server reports of itself."""
    found = {m.name: seen(call.attempt, m) for m in call.of("server")}
    return {"servers": [{"server": name, "role": said.get("role", "unknown"), "keys": int(said.get("keys", "0"))}
                        for name, said in found.items()]}


@app.action("redkeep.put")
def put(call: Call) -> Mapping[str, Json]:
    """put stores a value at the primary. A repeat runs the same tasks: it finds the same server, and stores once."""
    for member in call.of("server"):
        if seen(call.attempt, member).get("role") == "master":
            call.do(member, "put", verb("put", call.input["key"], call.input["value"]))
            return {"server": member.name}
    raise refuse("NO_PRIMARY", "input", "no server leads now")


def make(folder: Path) -> App:
    """make opens the files that outlive restarts."""
    own.keys, own.usage = Keys(folder / "key"), UsageLog(folder / "usage")
    return app


if __name__ == "__main__":
    sys.exit(main(name="redkeep", manifest=MANIFEST, make=make, build="1.0.0"))
