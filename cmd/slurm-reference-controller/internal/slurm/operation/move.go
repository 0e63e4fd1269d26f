package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// moveController has another member run what the controller runs, over the state on the volume that both have. The old
// one ends first: two of them would spoil the state of both. Jobs run on meanwhile, and report their ends to the new
// one. It waits for a node that is away, unless forced: force states that the old one does not run any more.
func moveController(ctx context.Context, w work, old, fresh adapter.Member) error {
	var config layout.Config
	if err := w.Config(&config); err != nil {
		return err
	}
	w.Progress("checking nodes", 5, "checking the node of the new controller")
	facts, err := w.Look(ctx, []adapter.Member{fresh}, config)
	if err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	unlock, err := w.turns.Lock(ctx, w.Instance().ID)
	if err != nil {
		return err
	}
	defer unlock()
	w.Progress("stopping controller", 15, ending(old))
	for _, process := range daemons.ControllerProcesses() {
		if err := reached(w.Try(ctx, old, "move-stop-"+process, adapter.StopProcess{Name: process})); err != nil {
			return err
		}
	}
	w.Lead = &fresh
	cluster, err := w.takeOver(ctx, fresh, facts)
	if err != nil {
		return w.giveBack(ctx, old, fresh, err)
	}
	w.Progress("updating members", 70, "sending workers and logins the controller's address")
	missed, err := w.tellAll(ctx, "")
	if err != nil {
		return err
	}
	send := daemons.Step{Name: "move-send-conf", Task: daemons.Shell(`timeout 20 scontrol reconfigure`)}
	if err := w.Steps(ctx, fresh, send); err != nil {
		return err
	}
	if err := w.Evidence("moved", map[string]any{"from": old.ID, "to": fresh.ID, "host": cluster.Host,
		"notTold": missed}); err != nil {
		return err
	}
	w.Progress("tearing down", 85, "deleting the old controller's sandbox and verifying that nothing is left")
	return w.Teardown(ctx, []adapter.Member{old})
}

// ending returns the progress message of a controller that ends.
func ending(old adapter.Member) string {
	message := "stopping slurmctld and slurmdbd where they run"
	if !old.Node.IsReachable() {
		message += fmt.Sprintf("; node %s does not answer, and is awaited unless forced", old.Node.Name)
	}
	return message
}

// takeOver starts the controller's daemons on a member, over the state and the record that were kept.
func (w work) takeOver(ctx context.Context, fresh adapter.Member, facts daemons.Facts) (layout.Cluster, error) {
	if err := w.StartMunge(ctx, fresh); err != nil {
		return layout.Cluster{}, err
	}
	result, err := w.Try(ctx, fresh, "bring-record", daemons.Shell(layout.BringConf))
	if err != nil {
		return layout.Cluster{}, err
	}
	if result.State != adapter.TaskSucceeded {
		return layout.Cluster{}, adapter.Fail("STATE_GONE", adapter.OwnerNode, false,
			"the volume of the controller's state has no record of the cluster")
	}
	return w.startOver(ctx, fresh, facts)
}

// startOver starts the controller's daemons by the record that the member has, under the name that its host has now.
func (w work) startOver(ctx context.Context, controller adapter.Member, facts daemons.Facts) (layout.Cluster, error) {
	held, err := w.readRecord(ctx, "record")
	if err != nil {
		return layout.Cluster{}, err
	}
	if slices.Contains(facts.Listening, held.Port) {
		return layout.Cluster{}, adapter.Fail("NO_FREE_PORTS", adapter.OwnerNode, true,
			"another program listens on port %d of node %s, which the cluster needs", held.Port, controller.Node.Name)
	}
	cluster, _, err := w.edited(held, func(c *layout.Cluster) error {
		c.Host = cmp.Or(facts.Hosts[controller.ID], c.Host)
		for _, worker := range w.Of(layout.ComponentWorker) {
			c.Label(worker.ID, worker.Labels)
		}
		return nil
	})
	if err != nil {
		return layout.Cluster{}, err
	}
	return cluster, w.StartController(ctx, controller, cluster)
}

// tellAll makes the controller's address known to all other members, and returns those whose nodes do not answer: they
// receive it when they are brought up again.
func (w work) tellAll(ctx context.Context, round string) (missed []string, err error) {
	missed = []string{}
	others := slices.Concat(w.reachable(layout.ComponentWorker), w.reachable(layout.ComponentLogin))
	for _, member := range slices.Concat(w.Of(layout.ComponentWorker), w.Of(layout.ComponentLogin)) {
		if !member.Node.IsReachable() {
			missed = append(missed, member.ID)
		}
	}
	return missed, w.Each(ctx, others, func(ctx context.Context, member adapter.Member) error {
		return w.NameController(ctx, member, "-moved"+round)
	})
}

// giveBack starts the old controller again after the new one did not come up, as far as its node answers, and returns
// the cause.
func (w work) giveBack(ctx context.Context, old, fresh adapter.Member, cause error) error {
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil || !old.Node.IsReachable() {
		return cause
	}
	for _, process := range daemons.ControllerProcesses() {
		_, _ = w.Try(clean, fresh, "give-back-"+process, adapter.StopProcess{Name: process})
	}
	w.Lead = &old
	_, err := w.takeOver(clean, old, daemons.Facts{Hosts: map[string]string{old.ID: w.hostOf(clean, old)}})
	if err != nil {
		w.Log().Error("the old controller could not be started again", "error", err)
	}
	return cause
}

// hostOf asks a member for the name of its host.
func (w work) hostOf(ctx context.Context, member adapter.Member) string {
	result, err := w.Do(ctx, member, "host-name", adapter.RunCommand{Command: []string{"uname", "-n"}})
	if err != nil {
		return ""
	}
	host := firstLine(result.Stdout)
	if !layout.ValidHost(host) {
		return ""
	}
	return host
}
