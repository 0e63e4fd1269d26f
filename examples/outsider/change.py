#!/usr/bin/env python3
"""Changes a skeleton as its author would: members drain and come back, and an instance is upgraded and rolled back.

change.py LANGUAGE FOLDER changes the app and its manifest. It plays the part of an author's editor."""

import json
import sys
from pathlib import Path

PYTHON = '''@app.operation("member.drain")
def drain(run: Run) -> None:
    """drain stops the targets' work; nothing else uses them. Canceled, they work again."""
    for member in run.targets:
        run.member(member.id, "draining", "healthy")
    with run.undoing(lambda: bring_up(run, run.targets)):
        stop(run, run.targets)
    for member in run.targets:
        run.member(member.id, "drained", "healthy")
    run.evidence("drained", [member.name for member in run.targets])


@app.operation("member.uncordon")
def uncordon(run: Run) -> None:
    """uncordon brings drained members back to work."""
    bring_up(run, run.targets)
    run.evidence("back", [member.name for member in run.targets])


@app.operation("instance.upgrade", "instance.rollback")
def upgrade(run: Run) -> None:
    """upgrade starts every member again with the version and config that the instance is to have."""
    run.progress("upgrading", 10, f"to {run.instance.version}")
    stop(run, run.members)
    bring_up(run, run.members)
    run.evidence("version", run.instance.version)


@app.observe
'''

GO = '''// drain stops the targets' work; nothing else uses them. Canceled, they work again.
func drain(ctx context.Context, run *adapter.Run) error {
	for _, member := range run.Targets() {
		if err := run.Member(member.ID, adapter.MemberDraining, adapter.Healthy, nil); err != nil {
			return err
		}
	}
	if err := stop(ctx, run, run.Targets()); err != nil {
		clean, cancel := run.Cleanup(ctx)
		defer cancel()
		_ = bringUp(clean, run, run.Targets())
		return err
	}
	for _, member := range run.Targets() {
		if err := run.Member(member.ID, adapter.MemberDrained, adapter.Healthy, nil); err != nil {
			return err
		}
	}
	return run.Evidence("drained", len(run.Targets()))
}

// uncordon brings drained members back to work.
func uncordon(ctx context.Context, run *adapter.Run) error {
	if err := bringUp(ctx, run, run.Targets()); err != nil {
		return err
	}
	return run.Evidence("back", len(run.Targets()))
}

// upgrade starts every member again with the version and config that the instance is to have.
func upgrade(ctx context.Context, run *adapter.Run) error {
	run.Progress("upgrading", 10, "to "+run.Instance().Version)
	workers := run.Of(component)
	if err := stop(ctx, run, workers); err != nil {
		return err
	}
	if err := bringUp(ctx, run, workers); err != nil {
		return err
	}
	return run.Evidence("version", run.Instance().Version)
}

// observe says'''

TYPESCRIPT = '''/** drain stops the targets' work; nothing else uses them. Canceled, they work again. */
async function drain(run: Run): Promise<void> {
  for (const member of run.targets) run.member(member.id, "draining", "healthy");
  await run.undoing(() => bringUp(run, run.targets), () => stop(run, run.targets));
  for (const member of run.targets) run.member(member.id, "drained", "healthy");
  run.evidence("drained", run.targets.length);
}

/** uncordon brings drained members back to work. */
async function uncordon(run: Run): Promise<void> {
  await bringUp(run, run.targets);
  run.evidence("back", run.targets.length);
}

/** upgrade starts every member again with the version and config that the instance is to have. */
async function upgrade(run: Run): Promise<void> {
  run.progress("upgrading", 10, `to ${run.instance.version}`);
  await stop(run, run.members);
  await bringUp(run, run.members);
  run.evidence("version", run.instance.version);
}

/** read is'''

# The app's file, and what is replaced there: what a member runs knows its version, and the kinds are added.
CHANGES = {
    "python": ("adapter.py", [
        ('%H:%M:%SZ >>', '%H:%M:%SZ-"$VERSION" >>'),
        ('env={"INTERVAL": interval}', 'env={"INTERVAL": interval, "VERSION": run.instance.version}'),
        ("@app.observe\n", PYTHON),
    ]),
    "go": ("main.go", [
        ("%H:%M:%SZ >>", '%H:%M:%SZ-"$VERSION" >>'),
        ('fmt.Sprint(max(wanted.IntervalSeconds, 1))}},',
         'fmt.Sprint(max(wanted.IntervalSeconds, 1))}, {Name: "VERSION", Value: run.Instance().Version}},'),
        ("adapter.InstanceDecommission: decommission,",
         "adapter.InstanceDecommission: decommission,\n\t\tadapter.MemberDrain: drain, adapter.MemberUncordon: uncordon,\n"
         "\t\tadapter.InstanceUpgrade: upgrade, adapter.InstanceRollback: upgrade,"),
        ("// observe says", GO),
    ]),
    "typescript": ("src/app.ts", [
        ("%H:%M:%SZ >>", '%H:%M:%SZ-"$VERSION" >>'),
        ("env: { INTERVAL }", "env: { INTERVAL, VERSION: run.instance.version }"),
        ('"instance.decommission": decommission,',
         '"instance.decommission": decommission,\n      "member.drain": drain, "member.uncordon": uncordon, '
         '"instance.upgrade": upgrade,\n      "instance.rollback": upgrade,'),
        ("/** read is", TYPESCRIPT),
    ]),
}


def main(language: str, folder: Path) -> None:
    """main changes the app in the folder."""
    name, changes = CHANGES[language]
    text = (folder / name).read_text()
    for old, new in changes:
        if old not in text:
            raise SystemExit(f"{name} is no skeleton any more: it lacks {old!r}")
        text = text.replace(old, new, 1)
    (folder / name).write_text(text)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    rolling = {"mode": "rolling", "keepsWork": False, "notes": "Members start again with the new version."}
    manifest["lifecycle"].update(upgrade=rolling, rollback=rolling)
    file.write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
