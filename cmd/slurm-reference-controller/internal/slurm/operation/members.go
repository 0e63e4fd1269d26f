package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// addMembers brings new workers up. Jobs on the others run on. When it fails or is canceled, the
// new workers are taken out of Slurm again; the platform cleans their nodes.
func addMembers(ctx context.Context, w work) error {
	targets := w.Targets()
	defer w.turns.markJoining(targets)()
	cluster, err := w.join(ctx, targets, "", 10)
	if err != nil {
		return w.takeBack(ctx, targets, err)
	}
	for _, member := range present(cluster, targets) {
		if err := w.InService(member, cluster); err != nil {
			return err
		}
	}
	return w.Evidence("joined", names(cluster, targets))
}

// recoverMember brings up members that did not come up, or have died.
func recoverMember(ctx context.Context, w work) error {
	targets := w.Targets()
	defer w.turns.markJoining(targets)()
	for _, member := range targets {
		if member.ComponentKey == layout.ComponentController {
			return recoverController(ctx, w, member)
		}
	}
	cluster, err := w.join(ctx, targets, "", 10)
	if err != nil {
		return err
	}
	for _, member := range present(cluster, targets) {
		if !member.Cordoned {
			if err := w.resume(ctx, cluster, member, "resume"); err != nil {
				return err
			}
		}
		if err := w.InService(member, cluster); err != nil {
			return err
		}
	}
	return w.Evidence("recovered", names(cluster, targets))
}

// recoverController starts the controller's daemons again over its files and its state, or the state that a volume
// kept. A controller that never wrote its files is brought up like a new one.
func recoverController(ctx context.Context, w work, controller adapter.Member) error {
	unlock, err := w.turns.Lock(ctx, w.Instance().ID)
	if err != nil {
		return err
	}
	defer unlock()
	for _, process := range daemons.ControllerProcesses() {
		if _, err := w.Try(ctx, controller, "stop-"+process, adapter.StopProcess{Name: process}); err != nil {
			return err
		}
	}
	result, err := w.Try(ctx, controller, "has-record", daemons.Shell(layout.BringConf))
	if err != nil {
		return err
	}
	if result.State != adapter.TaskSucceeded {
		return create(ctx, w)
	}
	if err := w.StartMunge(ctx, controller); err != nil {
		return err
	}
	_, err = w.startOver(ctx, controller, daemons.Facts{Hosts: map[string]string{controller.ID: w.hostOf(ctx,
		controller)}})
	return err
}

// join brings workers up until slurmctld reaches them, and logins until people do. A reason, if there is one, keeps
// work from the workers: they are drained with it before they come up.
func (w work) join(ctx context.Context, targets []adapter.Member, reason string, percent int) (layout.Cluster, error) {
	var config layout.Config
	if err := w.Config(&config); err != nil {
		return layout.Cluster{}, err
	}
	w.Progress("checking nodes", percent, "checking the nodes of "+report.Counted(len(targets), "member"))
	// What an earlier attempt started would occupy its own port.
	if err := w.Each(ctx, targets, func(ctx context.Context, member adapter.Member) error {
		process := ends[member.ComponentKey]
		_, err := w.Try(ctx, member, "stop-"+process, adapter.StopProcess{Name: process})
		return err
	}); err != nil {
		return layout.Cluster{}, err
	}
	workers, logins := ofComponent(targets, layout.ComponentWorker), ofComponent(targets, layout.ComponentLogin)
	facts, err := w.Look(ctx, targets, config)
	if err != nil {
		return layout.Cluster{}, err
	}
	w.Progress("distributing keys", percent+10, "starting munge on the new members")
	if err := w.Each(ctx, targets, w.StartMunge); err != nil {
		return layout.Cluster{}, err
	}
	if len(workers) > 0 {
		w.Progress("joining", percent+20, "restarting slurmctld with its new workers; jobs keep running")
	}
	cluster, err := w.reshape(ctx, "join", func(c *layout.Cluster) error {
		return w.admit(c, workers, facts)
	}, w.restart)
	if err != nil {
		return cluster, err
	}
	if err := w.rouse(ctx, workers, cluster, reason, percent+40); err != nil {
		return cluster, err
	}
	return cluster, w.StartLogins(ctx, logins, cluster)
}

// ends are the processes for which members of a component are there.
var ends = map[string]string{layout.ComponentWorker: "slurmd", layout.ComponentLogin: login.Process}

// ofComponent returns the members of one component.
func ofComponent(members []adapter.Member, key string) []adapter.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m adapter.Member) bool { return m.ComponentKey != key })
}

// admit adds the targets' lines, with their GPUs.
func (w work) admit(cluster *layout.Cluster, targets []adapter.Member, facts daemons.Facts) error {
	cluster.Busy = facts.Listening
	for _, member := range targets {
		if err := cluster.Place(member, facts.Hosts[member.ID], w.Of(layout.ComponentWorker)); err != nil {
			return err
		}
		cluster.Label(member.ID, member.Labels)
		cluster.GiveProlog(member.ID)
	}
	w.equip(cluster, targets, facts)
	return nil
}

// rouse starts the slurmd of workers that slurmctld knows, and checks that slurmctld's node reaches
// them.
func (w work) rouse(
	ctx context.Context, targets []adapter.Member, cluster layout.Cluster, reason string, percent int,
) error {
	controller, err := w.Controller()
	if err != nil || len(targets) == 0 {
		return err
	}
	if reason != "" {
		if err := w.hold(ctx, cluster, targets, reason); err != nil {
			return err
		}
	}
	if err := w.BringPeople(ctx, targets, ""); err != nil {
		return err
	}
	w.Progress("starting workers", percent, fmt.Sprintf("starting %d slurmd", len(targets)))
	return w.Each(ctx, targets, func(ctx context.Context, member adapter.Member) error {
		if err := w.StartWorker(ctx, member, cluster); err != nil {
			return err
		}
		worker, _ := cluster.Of(member.ID)
		reach := adapter.Probe{
			TCP:      &adapter.TCPProbe{Port: layout.WorkerPort(cluster.Port, worker.Slot), Host: worker.Address},
			Attempts: 25, IntervalSeconds: daemons.ProbeInterval, TimeoutSeconds: 2,
		}
		return w.Steps(ctx, controller, daemons.Step{Name: "reach-" + worker.Name(), Task: reach})
	})
}

// takeBack takes workers that did not come up out of Slurm again, and returns the cause.
func (w work) takeBack(ctx context.Context, targets []adapter.Member, cause error) error {
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return cause
	}
	for _, member := range targets {
		if w.Reaches(member) && member.Node.IsReachable() {
			stop := adapter.StopProcess{Name: ends[member.ComponentKey]}
			_, _ = w.Try(clean, member, "take-back", stop, adapter.Within(20*time.Second))
		}
	}
	_, err := w.reshape(clean, "take-back", func(c *layout.Cluster) error {
		for _, member := range targets {
			c.Remove(member.ID)
		}
		return nil
	}, w.restart)
	if err != nil {
		w.Log().Error("new workers could not be removed from slurm.conf; the next operation removes them", "error", err)
	}
	for _, member := range targets {
		_ = w.Member(member.ID, adapter.MemberFailed, adapter.Unhealthy, map[string]any{"inSlurm": err != nil})
	}
	return cause
}

// names returns the Slurm names of members, by member.
func names(cluster layout.Cluster, members []adapter.Member) map[string]string {
	list := make(map[string]string, len(members))
	for _, member := range members {
		if worker, ok := cluster.Of(member.ID); ok {
			list[member.ID] = worker.Name()
		}
	}
	return list
}

// labelMember sets labels as the Slurm features of workers, at once and in slurm.conf.
func labelMember(ctx context.Context, w work) error {
	var change adapter.LabelChange
	if err := w.Change(&change); err != nil {
		return err
	}
	targets := ofComponent(w.Targets(), layout.ComponentWorker) // Slurm knows no others
	cluster, err := w.reshape(ctx, "label", func(c *layout.Cluster) error {
		for _, member := range targets {
			c.Label(member.ID, change.Labels)
		}
		return nil
	}, func(ctx context.Context, controller adapter.Member, cluster layout.Cluster, round string) error {
		return w.applyFeatures(ctx, controller, cluster, targets, round)
	})
	if err != nil {
		return err
	}
	list := layout.Features(change.Labels)
	for _, member := range targets {
		if _, ok := cluster.Of(member.ID); !ok {
			return notInCluster(member)
		}
	}
	return w.Evidence("features", list)
}

// applyFeatures sets the features in the running slurmctld: slurm.conf alone counts only after a restart.
func (w work) applyFeatures(
	ctx context.Context, controller adapter.Member, cluster layout.Cluster, targets []adapter.Member, round string,
) error {
	for _, member := range targets {
		worker, ok := cluster.Of(member.ID)
		if !ok {
			return notInCluster(member)
		}
		list := strings.Join(worker.Features, ",")
		update := adapter.RunCommand{Command: []string{
			"timeout", "20", "scontrol", "update",
			"NodeName=" + worker.Name(), "AvailableFeatures=" + list, "ActiveFeatures=" + list,
		}}
		name := "features-" + worker.Name() + round
		if err := w.Steps(ctx, controller, daemons.Step{Name: name, Task: update}); err != nil {
			return err
		}
	}
	return nil
}

func notInCluster(member adapter.Member) error {
	return adapter.Fail(
		"NOT_IN_CLUSTER", adapter.OwnerAdapter, false,
		"Slurm has no node of member %s; recover or remove it", member.ID,
	)
}
