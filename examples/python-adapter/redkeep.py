"""redkeep: Redis with a primary and replicas, as an adapter on the kit gpuaas_adapter."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Callable

from gpuaas_adapter import (
    App, Asked, Call, Failure, Json, Member, PlanCall, Run, Task, TaskResult, UsageLog, check_counts, is_unreachable, main,
    observe_members, pause, refuse, seal, tasks, within, write_time,
)

BUILD = "1.0.0"
HERE = Path(__file__).parent
MANIFEST = (HERE / "manifest.json").read_bytes()
SCRIPT = (HERE / "redkeep.sh").read_text()
FOLDER = "/srv/redkeep"
PROCESS = "redis"
GUARD = f'f="$GPUAAS_MEMBER_ROOT{FOLDER}/redkeep.sh"; test -f "$f" || exit 0; exec sh "$f" "$@"'
QUICK = 10  # seconds for what a healthy node does at once

State = dict[str, str]
Ask = Callable[[Member, str, Task], "TaskResult | None"]


def verb(*words: str, seconds: int = QUICK) -> Task:
    """verb runs a verb of the script. Where it was never written nothing can have happened: it prints nothing."""
    return tasks.run(["sh", "-c", GUARD, "redkeep", *words], seconds=seconds)


def state_of(ask: Ask, member: Member) -> State:
    """state_of is what a server says of itself; empty when it does not answer."""
    result = ask(member, "state", verb("state"))
    lines = result.stdout.splitlines() if result is not None and result.succeeded else []
    return dict(line.split("=", 1) for line in lines if "=" in line)


def looking(run: Run) -> Ask:
    """looking asks for at most ten seconds, whatever becomes of the node."""

    def ask(member: Member, step: str, task: Task) -> TaskResult | None:
        if not member.node.reachable:
            return None
        try:
            with within(QUICK):
                return run.look(member, step, task)
        except (TimeoutError, Failure):
            return None

    return ask


def serving(members: list[Member]) -> list[Member]:
    """serving leaves out members that failed: they come back when they are recovered."""
    return sorted((m for m in members if m.status != "failed"), key=lambda m: m.index)


class Redkeep:
    """Redkeep holds what outlives a restart beside the journal: the key that passwords are made from, and the usage."""

    def __init__(self, folder: Path) -> None:
        key = folder / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(secrets.token_hex(32))
            os.sync()
        self._key, self._usage, self._lock = key.read_bytes(), UsageLog(folder / "usage"), threading.Lock()
        self._read: dict[str, float] = {}

    def app(self) -> App:
        """app is the app with a function for everything that it can do."""
        app = App.from_manifest(MANIFEST)
        for kinds, function in {
            ("instance.create",): self.create, ("instance.decommission",): self.decommission, ("members.add",): self.add,
            ("instance.upgrade", "instance.rollback"): self.change, ("member.drain",): self.drain,
            ("member.cordon",): self.cordon, ("member.uncordon",): self.uncordon, ("member.label",): self.label,
            ("member.remove",): self.remove, ("member.replace",): self.replace, ("member.recover",): self.recover,
        }.items():
            app.operation(*kinds)(function)
        app.check(check)
        app.observe(observe)
        app.plan(plan)
        app.leaving(leaving)
        app.usage(self.usage)
        app.action("redkeep.status")(status)
        app.action("redkeep.put")(put)
        return app

    # -- one server

    def launch(self, run: Run, member: Member, leader: Member | None, version: str, config: Json, prefix: str = "") -> None:
        """launch brings a server to these settings, whatever it ran with before, as the primary or as a replica."""
        settings = (f"# version {version}\nbind {member.host}\nreplica-announce-ip {member.host}\nprotected-mode no\n"
                    f"maxmemory {config.get('memoryMiB', 64)}mb\nsave \"\"\nshutdown-timeout 0\nrepl-diskless-sync-delay 0\n"
                    f"appendonly {'yes' if config.get('appendOnly', True) else 'no'}\n")
        first = 6379 if member.address else 20000 + zlib.crc32(member.id.encode()) % 12000
        run.do(member, prefix + "stop", tasks.stop_process(PROCESS))
        run.do(member, prefix + "script", tasks.write_file(f"{FOLDER}/redkeep.sh", SCRIPT, mode="0755"))
        run.do(member, prefix + "settings", tasks.write_file(f"{FOLDER}/settings", settings))
        sealed = seal(member.node.sealing_key, run.instance.id, self.passwords(run.instance.id))
        run.do(member, prefix + "secret", tasks.write_file(f"{FOLDER}/secret", sealed=sealed, mode="0600"))
        run.do(member, prefix + "port", verb("port", str(first)))
        run.do(member, prefix + "fresh", verb("fresh"))
        where = ["lead"] if leader is None else ["follow", leader.host, state_of(looking(run), leader).get("port", "0")]
        run.do(member, prefix + "place", verb(*where))
        command = ["sh", "-c", f'exec sh "$GPUAAS_MEMBER_ROOT{FOLDER}/redkeep.sh" serve']
        run.do(member, prefix + "start", tasks.start_process(PROCESS, command, restart="on_failure", max_restarts=5,
                                                             stop_seconds=5))
        run.do(member, prefix + "up", tasks.probe(command=["sh", "-c", GUARD, "redkeep", "up"], attempts=150, interval=0.2))

    def passwords(self, instance: str) -> bytes:
        """passwords are an instance's own: of the adapter and the replicas, and of clients."""
        return "".join(f"{who} {hmac.new(self._key, f'{who} {instance}'.encode(), hashlib.sha256).hexdigest()}\n"
                       for who in ("keeper", "client")).encode()

    def bring_up(self, run: Run, members: list[Member], leader: Member | None) -> None:
        """bring_up starts servers, at once, and reports each as active."""

        def one(member: Member) -> None:
            run.member(member.id, "joining", "unknown")
            self.launch(run, member, leader, run.instance.version, run.instance.config)
            run.member(member.id, "active", "healthy", {"name": member.name, "address": member.host})

        run.each(members, one)

    # -- operations

    def create(self, run: Run) -> None:
        """create starts the server of the lowest index as the primary, and then the others as its replicas."""
        first, *others = run.of("server")
        run.progress("starting", 10, f"starting {len(others) + 1} servers")
        self.bring_up(run, [first], None)
        self.bring_up(run, others, first)
        run.evidence("servers", len(others) + 1)

    def add(self, run: Run) -> None:
        """add starts the targets as replicas; when that fails nothing of them stays."""
        try:
            self.bring_up(run, run.targets, primary(run, run.targets))
        except BaseException:
            with run.cleanup():
                for member in run.targets:
                    run.attempt(member, "forget.stop", tasks.stop_process(PROCESS))
                    run.member(member.id, "failed", "unknown")
            raise
        run.evidence("added", [m.name for m in run.targets])

    def drain(self, run: Run) -> None:
        """drain makes another server the primary, lets no new client in, and waits until none is left."""
        try:
            empty(run, run.targets)
        except BaseException:
            with run.cleanup():
                reopen(run, run.targets)
            raise
        for member in run.targets:
            run.member(member.id, "drained", "healthy" if state_of(looking(run), member) else "unknown")

    def remove(self, run: Run) -> None:
        """remove empties the targets, and takes them away."""
        try:
            empty(run, run.targets)
            run.commit()
        except BaseException:
            with run.cleanup():
                reopen(run, run.targets)
            raise
        self.leave(run, run.targets)

    def replace(self, run: Run) -> None:
        """replace starts the new server, and removes the old one when it has joined."""
        new = [m for m in run.members if m.id == run.change["replacementId"]]
        try:
            self.bring_up(run, new, primary(run, new))
            empty(run, run.targets, new)
            run.commit()
        except BaseException:
            with run.cleanup():
                reopen(run, run.targets)
                run.attempt(new[0], "forget.stop", tasks.stop_process(PROCESS))
            raise
        self.leave(run, run.targets)

    def recover(self, run: Run) -> None:
        """recover starts the targets on the data that they have, as replicas where there is a primary."""
        leader = primary(run, run.targets, promote=True)
        targets = serving([m for m in run.members if m.id in {t.id for t in run.targets}]) or run.targets
        if leader is None:
            self.bring_up(run, targets[:1], None)
            leader, targets = targets[0], targets[1:]
        self.bring_up(run, targets, leader)
        run.evidence("recovered", [m.name for m in run.targets])

    def change(self, run: Run) -> None:
        """change is an upgrade or a rollback: replicas first, and the primary last, after it has handed over. When it
        fails the changed servers are changed back."""
        members, changed = serving(list(run.members)), []
        before = run.change["from"]
        try:
            for member in members:
                if not state_of(looking(run), member):
                    raise Failure("NODE_UNREACHABLE", f"{member.name} does not answer; nothing was changed", "node")
            leader = primary(run, [])
            for n, member in enumerate(sorted(members, key=lambda m: m is leader)):
                run.progress(f"changing {member.name}", 10 + 80 * n // len(members), f"changing {member.name}")
                changed.insert(0, member)
                leader = hand_over(run, [member]) if len(members) > 1 else None
                self.launch(run, member, leader, run.instance.version, run.instance.config)
                run.member(member.id, "drained" if member.status == "drained" else "active", "healthy")
        except BaseException:
            with run.cleanup():
                for member in changed:
                    self.launch(run, member, primary(run, [member]), before["version"], before.get("config") or {}, "back.")
                    run.member(member.id, "active", "healthy")
            raise
        run.evidence("versions", {m.name: state_of(looking(run), m).get("runs", "unknown") for m in members})

    def cordon(self, run: Run) -> None:
        """cordon lets no new client in; those that are connected go on."""
        for member in run.targets:
            run.do(member, "shut", verb("shut", "cordon"))
        run.evidence("cordoned", [m.name for m in run.targets])

    def uncordon(self, run: Run) -> None:
        """uncordon lets clients in again, whatever shut the server."""
        for member in run.targets:
            run.do(member, "unbolt", verb("unbolt"))
            if member.status == "drained":
                run.member(member.id, "active", "healthy")
        run.evidence("uncordoned", [m.name for m in run.targets])

    def label(self, run: Run) -> None:
        """label writes the labels down where the member's own programs can read them."""
        for member in run.targets:
            text = "".join(f"{name}={value}\n" for name, value in sorted(run.change.get("labels", {}).items()))
            run.do(member, "labels", tasks.write_file(f"{FOLDER}/labels", text))
        run.evidence("labels", run.change.get("labels", {}))

    def decommission(self, run: Run) -> None:
        """decommission waits for no client: it works on an instance that never came up, too."""
        run.progress("stopping", 10, f"stopping {len(run.members)} servers")
        evict(run, list(run.members))
        self.leave(run, list(run.members))

    def leave(self, run: Run, members: list[Member]) -> None:
        """leave counts what was done last, stops servers in good order and has their nodes prove that nothing is left."""
        self.count(run.instance.id, members, looking(run))

        def stop(member: Member) -> None:
            try:
                run.attempt(member, "stop", tasks.stop_process(PROCESS))
            except Failure as failure:
                if not is_unreachable(failure):
                    raise

        run.each(members, stop)
        run.teardown(members)

    # -- usage

    def usage(self, call: Call, after: str) -> dict[str, Json]:
        """usage counts the commands since the last reading, at most every ten seconds."""
        with self._lock:
            due = time.monotonic() - self._read.get(call.instance.id, -60.0) > 10
            self._read[call.instance.id] = time.monotonic()
        if due:
            self.count(call.instance.id, list(call.members), call.ask)
        return self._usage.page(call.instance.id, after)

    def count(self, instance: str, members: list[Member], ask: Ask) -> None:
        """count reads the servers' counters. A record's id is the server's run with its counter: counted twice it is
        the same record."""
        states = {m.id: state_of(ask, m) for m in members}
        with self._lock:
            for member, state in states.items():
                if "run_id" not in state:
                    continue
                run, total, now = state["run_id"], int(state["total_commands_processed"]), write_time(time.time())
                seen = [r for r in self._usage.records(instance) if str(r["id"]).startswith(run)]
                last = int(str(seen[-1]["id"]).partition(".")[2]) if seen else 0
                if total > last:
                    begin = seen[-1]["to"] if seen else now
                    self._usage.add(instance, {"id": f"{run}.{total}", "dimension": "commands", "memberId": member,
                                               "quantity": str(total - last), "from": begin, "to": now})


def check(asked: Asked) -> None:
    """check refuses what could not be done safely."""
    check_counts(app, asked)
    if asked.kind.startswith("member") and not asked.targets and asked.kind != "members.add":
        raise refuse("TARGET_MISSING", "targets", f"{asked.kind} needs a member")
    if asked.kind == "member.replace":
        change = asked.change if isinstance(asked.change, dict) else {}
        if getattr(asked, "operation_id", "") and change.get("replacementId") not in [m.id for m in asked.members]:
            raise refuse("REPLACEMENT_UNKNOWN", "change.replacementId", "is not one of members")


def primary(run: Run, without: list[Member], promote: bool = False) -> Member | None:
    """primary is the server that leads now. With promote a replica takes over where none does."""
    left = [m for m in serving(list(run.members)) if m not in without]
    states = {m.id: state_of(looking(run), m) for m in left}
    leads = [m for m in left if states[m.id].get("role") == "master"]
    if leads:
        return max(leads, key=lambda m: int(states[m.id].get("connected_slaves", "0")))
    follows = [m for m in left if states[m.id]]
    if not promote or not follows:
        return None
    best = max(follows, key=lambda m: int(states[m.id].get("slave_repl_offset", "0")))
    run.do(best, "lead", verb("lead"))
    point(run, [m for m in follows if m is not best], best, states[best.id]["port"])
    return best


def point(run: Run, replicas: list[Member], leader: Member, port: str) -> None:
    """point makes servers follow another one."""
    run.each(replicas, lambda m: None if run.attempt(m, f"follow.{leader.id}", verb("follow", leader.host, port)) else None)


def hand_over(run: Run, leaving: list[Member], also: list[Member] | None = None) -> Member | None:
    """hand_over makes another server the primary when it is among those that leave, and returns the primary."""
    leader = primary(run, [])
    stay = [m for m in serving([*run.members]) if m not in leaving]
    if leader is not None and leader not in leaving:
        return leader
    states = {m.id: state_of(looking(run), m) for m in stay}
    ready = [m for m in stay if states[m.id].get("master_link_status") == "up"]
    if leader is None or not ready:
        return primary(run, leaving, promote=True)
    new = max(ready, key=lambda m: (m in (also or []), m.status == "active", int(states[m.id]["slave_repl_offset"])))
    task = verb("handover", new.host, states[new.id]["port"], seconds=40)
    if not run.attempt(leader, f"handover.{new.id}", task).succeeded:
        raise Failure("HANDOVER_FAILED", f"{leader.name} did not hand over to {new.name}", "node")
    run.do(new, "lead", verb("lead"))
    point(run, [m for m in stay if m is not new and states[m.id]], new, states[new.id]["port"])
    return new


def empty(run: Run, members: list[Member], also: list[Member] | None = None) -> None:
    """empty lets no new client in and waits until none is left; with force it ends their connections instead."""
    for member in members:
        run.member(member.id, "draining", "unknown" if run.force else "healthy")
    if run.force:
        evict(run, members)
        hand_over_forced(run, members)
        return
    hand_over(run, members, also)
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


def hand_over_forced(run: Run, members: list[Member]) -> None:
    """hand_over_forced does what can be done: what leaves may be dead."""
    try:
        hand_over(run, members)
    except Failure as failure:
        primary(run, members, promote=True)
        run.evidence("handover", failure.message)


def evict(run: Run, members: list[Member]) -> None:
    """evict ends the connections of clients; the evidence says what was lost."""
    lost: list[Json] = []
    ask = looking(run)
    for member in members:
        result = ask(member, "evict", verb("evict"))
        if result is not None and result.succeeded:
            lost += work_of(member, result)
    run.evidence("workLost", [work["id"] for work in lost])


def reopen(run: Run, members: list[Member]) -> None:
    """reopen takes back what a drain has shut, and nothing that somebody else has."""
    for member in members:
        run.attempt(member, "reopen", verb("reopen", f"drain-{run.op.id}"))
        run.member(member.id, "active", "healthy")


def work_of(member: Member, result: TaskResult) -> list[dict[str, Json]]:
    """work_of reads a list of clients, the oldest first."""
    found = [dict(word.split("=", 1) for word in line.split(" ") if "=" in word) for line in result.stdout.splitlines()]
    work = [{"kind": "client", "id": one["id"], "name": one.get("name", ""), "memberId": member.id, "owner": "",
             "since": write_time(time.time() - int(one["age"])), "message": f"connected to {member.name}"}
            for one in found if "id" in one]
    return sorted(work, key=lambda one: str(one["since"]))


def observe(call: Call) -> dict[str, Json]:
    """observe says which server leads, and which ones follow it in step."""

    def one(member: Member):  # type: ignore[no-untyped-def]
        state = state_of(call.ask, member)
        if not state:
            seen = call.ask(member, "inspect", tasks.inspect_process(PROCESS))
            return ("unknown", "its node did not answer") if seen is None else ("unhealthy", f"its process is {seen.process}")
        if state["role"] == "master":
            return "healthy", "the primary"
        return ("healthy", "a replica") if state.get("master_link_status") == "up" else ("degraded", "a replica that is behind")

    return observe_members(call, "servers run", one)


def plan(call: PlanCall) -> dict[str, Json]:
    """plan counts only clients that would really be cut off: a drain waits for them."""
    kind = call.asked.kind
    if kind not in ("instance.decommission", "member.remove", "member.replace", "member.drain", "instance.upgrade",
                    "instance.rollback"):
        return {"verdict": "safe", "reversible": True, "message": "no client is cut off"}
    members = call.targets if kind.startswith("member") else list(call.members)
    now = call.asked.force or not kind.startswith("member")
    work, silent = [], []
    for member in members:
        result = call.ask(member, "clients", verb("clients"))
        if result is None:
            silent.append(member.name)
        else:
            work += work_of(member, result)
    reasons = [{"code": "NODE_UNREACHABLE", "message": f"{name} cannot be asked", "path": "members"} for name in silent]
    said = f"{len(work)} clients are {'cut off' if now else 'waited for'}"
    if work:
        reasons.insert(0, {"code": "WORK_LOST" if now else "WORK_AWAITED", "message": said})
    verdict = "unsafe" if work and now else "unknown" if silent else "safe"
    return {"verdict": verdict, "reversible": kind in ("member.drain", "instance.upgrade"), "reasons": reasons,
            "workLost": work if now else [], "message": said}


def leaving(call: PlanCall, count: int) -> list[Member]:
    """leaving chooses the replicas of the highest index, and the primary last."""
    states = {m.id: state_of(call.ask, m) for m in call.targets}
    return sorted(call.targets, key=lambda m: (states[m.id].get("role") == "master", -m.index))[:count]


def status(call: Call) -> dict[str, Json]:
    """status is what each server says of itself."""
    found = [(m, state_of(call.attempt, m)) for m in call.of("server")]
    return {"servers": [{"server": m.name, "role": s.get("role", "unknown"), "keys": int(s.get("keys", "0"))} for m, s in found]}


def put(call: Call) -> dict[str, Json]:
    """put stores a value at the primary. Where it is was asked by the same tasks on a repeat: it is the same server."""
    for member in call.of("server"):
        if state_of(call.attempt, member).get("role") == "master":
            call.do(member, "put", verb("put", call.input["key"], call.input["value"]))
            return {"server": member.name}
    raise refuse("NO_PRIMARY", "input", "no server leads now")


app = App.from_manifest(MANIFEST)

if __name__ == "__main__":
    sys.exit(main(name="redkeep", manifest=MANIFEST, make=lambda folder: Redkeep(folder).app(), build=BUILD))
