// Package backup copies what a cluster must not lose, and brings it back: what slurmctld saves, the database of its
// accounts and the register of people. Nothing writes to it during a copy, so that queue and accounts are of one
// moment; jobs run on meanwhile. Each copy has its digests beside it, and is restored only if they match.
package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// VolumeDir is where backups are on a controller with a volume for them.
	VolumeDir = "/var/lib/slurm-backup"
	// BesideDir is where they are on one without.
	BesideDir = layout.StateDir + "/backups"
	// quick bounds a task that moves little, and long one that copies or unpacks.
	quick = 30 * time.Second
	long  = 75 * time.Second
)

// Turns are those of a cluster's operations: while slurmctld is stopped for a copy, no other stops or starts it.
type Turns interface {
	// Lock waits for the instance's turn; unlock ends it.
	Lock(ctx context.Context, instance string) (unlock func(), err error)
}

// Actions returns the actions that make, list and restore backups, by name.
func Actions(turns Turns) map[string]adapter.ActionFunc {
	taking := func(do func(context.Context, keeper) (any, error)) adapter.ActionFunc {
		return func(ctx context.Context, call *adapter.Call) (any, error) {
			k, err := newKeeper(call)
			if err != nil {
				return nil, err
			}
			unlock, err := turns.Lock(ctx, call.Instance.ID)
			if err != nil {
				return nil, err
			}
			defer unlock()
			return do(ctx, k)
		}
	}
	return map[string]adapter.ActionFunc{
		"state.backup": taking(save), "state.restore": taking(restore), "state.backups": list,
	}
}

// keeper is an action under way on the controller.
type keeper struct {
	call       *adapter.Call
	controller adapter.Member
	config     layout.Config
}

func newKeeper(call *adapter.Call) (keeper, error) {
	k := keeper{call: call}
	controllers := call.Of(layout.ComponentController)
	if len(controllers) != 1 {
		return k, adapter.Reject("NO_CONTROLLER", "members",
			"the cluster has %d controllers: try again when it has one", len(controllers))
	}
	k.controller = controllers[0]
	if len(call.Instance.Config) > 0 {
		if err := json.Unmarshal(call.Instance.Config, &k.config); err != nil {
			return k, fmt.Errorf("read the configuration: %w", err)
		}
	}
	k.config = k.config.WithDefaults()
	return k, nil
}

// dir returns where the backups are, and slot the volume that they are on; none where they are in the member.
func (k keeper) dir() (dir, slot string) {
	switch {
	case layout.HasVolume(k.controller, layout.SlotBackup):
		return VolumeDir, layout.SlotBackup
	case layout.HasVolume(k.controller, layout.SlotState):
		return BesideDir, layout.SlotState
	}
	return BesideDir, ""
}

// script runs a script on the controller with arguments.
func (k keeper) script(
	ctx context.Context, step string, limit time.Duration, script string, arguments ...string,
) (adapter.TaskResult, error) {
	command := append([]string{"sh", "-c", script, step}, arguments...)
	return k.call.Try(ctx, k.controller, step, adapter.RunCommand{Command: command}, adapter.Within(limit))
}

// halt stops what writes, slurmctld first: what it owes slurmdbd is in the accounts then, or among what it has saved.
func (k keeper) halt(ctx context.Context, round string) error {
	for _, process := range daemons.ControllerProcesses() {
		if process == "munged" {
			continue
		}
		stop := adapter.StopProcess{Name: process}
		if _, err := k.call.Do(ctx, k.controller, "stop-"+process+round, stop, adapter.Within(long)); err != nil {
			return err
		}
	}
	return nil
}

// again starts what was stopped. Where more is given, it is done once the database runs, before it is used.
func (k keeper) again(ctx context.Context, round string, more ...daemons.Step) error {
	for _, step := range daemons.Again(k.config, round, more...) {
		if _, err := k.call.Do(ctx, k.controller, "start-"+step.Name, step.Task, adapter.Within(long)); err != nil {
			return err
		}
	}
	return nil
}

// Backup is one as the actions answer it.
type Backup struct {
	// Name is the time of the backup, and Digest the digest of its digests.
	Name   string `json:"backup"`
	Digest string `json:"digest"`
	Saved  string `json:"savedAt"`
	Bytes  int    `json:"bytes"`
	// Slot is the volume that it is on; empty where it goes with the member.
	Slot    string `json:"slot"`
	Cluster string `json:"clusterName"`
	Version string `json:"version"`
	Slurm   string `json:"slurm"`
	// NextJob is the number that the next job would have had, and Jobs how many had not ended.
	NextJob int `json:"nextJob"`
	Jobs    int `json:"jobs"`
	People  int `json:"people"`
}

// nameForm is how backups are named, as Go and as a shell's pattern for grep -E.
const (
	nameForm    = "20060102T150405Z"
	namePattern = "^[0-9]{8}T[0-9]{6}Z$"
)

// entryScript prints the backup $name of the folder it is in as a line of nine fields.
const entryScript = `entry() { printf '%s|%s|%s|%s\n' "$name" "$(sha256sum < "$name/SHA256SUMS" | cut -c 1-64)" ` +
	`"$(du -sb "$name" | cut -f 1)" "$(head -n 1 "$name/about")"; }
`

// parse reads what entryScript printed; ok is false for any other line.
func parse(line, slot string) (one Backup, ok bool) {
	part := strings.Split(strings.TrimSpace(line), "|")
	if len(part) != 9 {
		return one, false
	}
	at, err := time.Parse(nameForm, part[0])
	if err != nil || len(part[1]) != 64 {
		return one, false
	}
	return Backup{Name: part[0], Digest: "sha256:" + part[1], Saved: at.Format(time.RFC3339), Slot: slot,
		Bytes: layout.Number(part[2]), Cluster: part[3], Version: part[4], Slurm: part[5],
		NextJob: layout.Number(part[6]), Jobs: layout.Number(part[7]), People: layout.Number(part[8])}, true
}

// listScript prints the backups of the folder $1, the newest first.
const listScript = entryScript + `cd "$1" 2> /dev/null || exit 0
ls -1 | grep -E '` + namePattern + `' | sort -r | head -n 40 | while read -r name; do entry; done`

// ListCommand lists the backups of a folder.
func ListCommand(dir string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", listScript, "backups", dir}}
}

// AnyScript prints "backed" where slurmctld's saved state is lost and a backup exists, and fails otherwise.
const AnyScript = `{ test ! -s ` + daemons.SavedState + ` && ls -1 ` + VolumeDir + ` ` + BesideDir + ` 2> /dev/null |
    grep -qE '` + namePattern + `' && echo backed; }`

// list returns the backups that the controller has.
func list(ctx context.Context, call *adapter.Call) (any, error) {
	k, err := newKeeper(call)
	if err != nil {
		return nil, err
	}
	dir, slot := k.dir()
	result, err := call.Do(ctx, k.controller, "backups", ListCommand(dir), adapter.Within(quick))
	if err != nil {
		return nil, err
	}
	found := []Backup{}
	for line := range strings.Lines(result.Stdout) {
		if one, ok := parse(line, slot); ok {
			found = append(found, one)
		}
	}
	return map[string]any{"backups": found}, nil
}

// failed is what a script says when it could not do its work.
func failed(result adapter.TaskResult) string {
	return strings.ToValidUTF8(strings.TrimSpace(result.Message+" "+result.Stderr), "?")
}

// code returns a script's exit code; -1 where it did not end by itself.
func code(result adapter.TaskResult) int {
	if result.ExitCode == nil {
		return -1
	}
	return *result.ExitCode
}

func text(number int) string { return strconv.Itoa(number) }
