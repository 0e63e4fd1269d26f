package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// maxSwaps bounds how often a change of slurm.conf begins again because another operation
	// changed it.
	maxSwaps = 5
	// swapTime bounds a change of slurm.conf with the restart that it needs. A cancel or a deadline
	// does not cut it short: a cluster must not be left without slurmctld.
	swapTime = 3 * time.Minute
)

// record is the cluster as its controller describes it.
type record struct {
	// text is slurm.conf as read, and Cluster its content.
	text string
	layout.Cluster
	// states are the Slurm states of nodes by name, empty when slurmctld did not answer.
	states map[string]string
	// up is whether slurmctld answered.
	up bool
}

const recordScript = `cat ` + layout.SlurmConfPath + ` || exit 1
echo "=== nodes"
timeout 10 sinfo -a -N -h -o "%N|%T" | sort -u
echo "=== slurmctld"
if ` + daemons.SlurmctldUp + `; then echo up; fi`

// readRecord reads the cluster's record.
func (w work) readRecord(ctx context.Context, step string) (record, error) {
	controller, err := w.Controller()
	if err != nil {
		return record{}, err
	}
	result, err := w.Do(ctx, controller, step, daemons.Shell(recordScript))
	if err != nil {
		return record{}, err
	}
	return parseRecord(result.Stdout, w.Of(layout.ComponentWorker))
}

// parseRecord reads the output of recordScript. Workers are the members that may own lines without a member.
func parseRecord(printed string, workers []adapter.Member) (record, error) {
	text, rest, _ := strings.Cut(printed, "=== nodes\n")
	nodes, up, _ := strings.Cut(rest, "=== slurmctld\n")
	cluster, err := layout.Parse(text)
	if err != nil {
		return record{}, adapter.Fail("RECORD_UNREADABLE", adapter.OwnerAdapter, false, "the controller's %v", err)
	}
	indexes := make(map[int]string, len(workers))
	for _, worker := range workers {
		indexes[worker.Index] = worker.ID
	}
	cluster.Claim(indexes)
	held := record{text: text, Cluster: cluster, states: map[string]string{}, up: strings.TrimSpace(up) == "up"}
	for _, line := range strings.Fields(nodes) {
		name, state, _ := strings.Cut(line, "|")
		held.states[name] = state
	}
	return held, nil
}

// An application puts a slurm.conf that was just written into effect. The names of its steps end
// with round.
type application func(ctx context.Context, controller adapter.Member, cluster layout.Cluster, round string) error

// reshape changes slurm.conf: edit changes the cluster as it is, and apply puts the result into
// effect. The file is replaced only if it is still what was read, so that two operations, or two
// runs of the controller program, never undo each other's change. A change that changes nothing is
// not applied, unless slurmctld is down.
func (w work) reshape(
	ctx context.Context, name string, edit func(*layout.Cluster) error, apply application,
) (layout.Cluster, error) {
	unlock, err := w.turns.Lock(ctx, w.Instance().ID)
	if err != nil {
		return layout.Cluster{}, err
	}
	defer unlock()
	for try := 1; try <= maxSwaps; try++ {
		held, err := w.readRecord(ctx, fmt.Sprintf("%s-read.%d", name, try))
		if err != nil {
			return layout.Cluster{}, err
		}
		wanted, text, err := w.edited(held, edit)
		if err != nil || text == held.text && held.up {
			return wanted, err
		}
		swapped, err := w.swap(ctx, fmt.Sprintf(".%s.%d", name, try), held, wanted, text, apply)
		if err != nil || swapped {
			return wanted, err
		}
	}
	return layout.Cluster{}, adapter.Fail(
		"RECORD_CONTESTED", adapter.OwnerAdapter, true, "another program changed slurm.conf %d times in a row: stop it",
		maxSwaps,
	)
}

// edited returns the cluster after edit, without the workers to forget, and its slurm.conf.
func (w work) edited(held record, edit func(*layout.Cluster) error) (layout.Cluster, string, error) {
	var config layout.Config
	if err := w.Config(&config); err != nil {
		return layout.Cluster{}, "", err
	}
	wanted := held.Cluster
	wanted.Config = config.WithDefaults()
	for _, worker := range held.Workers {
		if w.forgets(worker, held) {
			wanted.Remove(worker.MemberID)
		}
	}
	if err := edit(&wanted); err != nil {
		return layout.Cluster{}, "", err
	}
	text, err := layout.RenderSlurmConf(wanted)
	return wanted, text, err
}

// forgets reports whether a worker has left. The dispatch's members are the truth, but an older
// dispatch may still be under way while a newer one brings a member up: a worker that is being
// brought up, or that answers, is kept. Operations on the whole instance exclude all others; their
// list is final.
func (w work) forgets(worker layout.Worker, held record) bool {
	if slices.ContainsFunc(w.Of(layout.ComponentWorker), func(m adapter.Member) bool {
		return m.ID == worker.MemberID
	}) ||
		w.turns.isJoining(worker.MemberID) {
		return false
	}
	switch w.Dispatch().Kind {
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return true
	}
	return held.up && !answers(held.states[worker.Name()])
}

// answers reports whether slurmctld reaches a node in this state.
func answers(state string) bool {
	return state != "" && !strings.HasSuffix(state, "*") && state != "unknown" && !strings.HasPrefix(state, "down")
}

// swapScript replaces slurm.conf if its digest is $1, and keeps the old one. It exits with 5 if it
// is not.
const swapScript = `test "$(sha256sum < ` + layout.SlurmConfPath + ` | cut -d ' ' -f 1)" = "$1" || exit 5
cp -p ` + layout.SlurmConfPath + ` ` + layout.SlurmConfPath + `.before && mv -f ` +
	layout.SlurmConfPath + `.new ` + layout.SlurmConfPath

// swap replaces slurm.conf and applies it. When that fails, the old one is restored and applied.
func (w work) swap(
	ctx context.Context, round string, held record, wanted layout.Cluster, text string, apply application,
) (swapped bool, err error) {
	controller, err := w.Controller()
	if err != nil {
		return false, err
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), swapTime)
	defer cancel()
	file := adapter.WriteFile{Path: layout.SlurmConfPath + ".new", Mode: "0644", Content: text}
	if _, err := w.Do(ctx, controller, "conf-write"+round, file); err != nil {
		return false, err
	}
	if !sameNodes(held.Workers, wanted.Workers) && w.Dispatch().Kind == adapter.MemberLabel {
		apply = w.restart // another member's node left along with it
	}
	digest := sha256.Sum256([]byte(held.text))
	exchange := adapter.RunCommand{Command: []string{"sh", "-c", swapScript, "swap", hex.EncodeToString(digest[:])}}
	result, err := w.Try(ctx, controller, "conf-swap"+round, exchange)
	if err != nil {
		return false, err
	}
	if result.ExitCode != nil && *result.ExitCode == 5 {
		return false, nil
	}
	if result.State != adapter.TaskSucceeded {
		return false, adapter.Fail(
			adapter.CodeNodeTask, adapter.OwnerNode, true, "slurm.conf was not replaced: %s %s", result.Message,
			result.Stderr,
		)
	}
	if err := apply(ctx, controller, wanted, round); err != nil {
		return false, w.restore(ctx, controller, round, held, apply, err)
	}
	return true, nil
}

// sameNodes reports whether two lists differ in features at most.
func sameNodes(a, b []layout.Worker) bool {
	return slices.EqualFunc(a, b, func(x, y layout.Worker) bool {
		x.Features, y.Features = nil, nil
		return reflect.DeepEqual(x, y)
	})
}

// restore puts the old slurm.conf back after a new one could not be applied, and returns the cause
// of that.
func (w work) restore(
	ctx context.Context, controller adapter.Member, round string, held record, apply application, cause error,
) error {
	before, err := w.before(held)
	if err != nil {
		return cause
	}
	back := daemons.Shell(`cp -p ` + layout.SlurmConfPath + `.before ` + layout.SlurmConfPath)
	if _, err = w.Do(ctx, controller, "conf-back"+round, back); err == nil {
		err = apply(ctx, controller, before, round+".back")
	}
	if err != nil {
		w.Log().Error("the old configuration could not be put back", "error", err)
	}
	return cause
}

// before returns the cluster as it was, with the configuration that it had.
func (w work) before(held record) (layout.Cluster, error) {
	var config layout.Config
	if err := w.Config(&config); err != nil {
		return layout.Cluster{}, err
	}
	switch w.Dispatch().Kind {
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		from, _, err := layout.Versions(w.Dispatch().Change)
		if err != nil {
			return layout.Cluster{}, err
		}
		config = from
	}
	before := held.Cluster
	before.Config = config.WithDefaults()
	return before, nil
}

// restart stops slurmctld, which saves its state and lets jobs run on, and starts it with the
// present slurm.conf. slurmctld 22.05 accepts another set of nodes in no other way: on a
// reconfigure it ends, or keeps the old numbers of processors. Then the workers are sent the new
// file.
func (w work) restart(ctx context.Context, controller adapter.Member, cluster layout.Cluster, round string) error {
	stop := daemons.Step{Name: "stop-slurmctld" + round, Task: adapter.StopProcess{Name: "slurmctld"}}
	if err := w.Steps(ctx, controller, stop); err != nil {
		return err
	}
	if err := w.StartSlurmctld(ctx, controller, cluster, round); err != nil {
		return err
	}
	return w.Steps(
		ctx,
		controller,
		daemons.Step{Name: "send-conf" + round, Task: daemons.Shell(`timeout 20 scontrol reconfigure`)},
	)
}
