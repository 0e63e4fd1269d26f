package operation

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// removeMembers drains workers, takes them out of Slurm and deletes them. Under force it does not
// wait for the jobs there.
func removeMembers(ctx context.Context, w work) error {
	targets := w.Targets()
	held, err := w.readRecord(ctx, "record")
	if err != nil {
		return err
	}
	if err := w.retire(ctx, held.Cluster, targets, "remove"); err != nil {
		return err
	}
	return w.leave(ctx, held.Cluster, targets)
}

// replaceMember brings a new worker up, drains the old one and takes it out. The new one takes work
// only when the old one has none left: until then the replacement can be canceled without harm.
func replaceMember(ctx context.Context, w work) error {
	olds, fresh, err := w.exchange()
	if err != nil {
		return err
	}
	if len(fresh) == 1 && len(olds) == 1 && fresh[0].ComponentKey == layout.ComponentController {
		return moveController(ctx, w, olds[0], fresh[0])
	}
	defer w.turns.markJoining(fresh)()
	cluster, err := w.join(ctx, fresh, w.reason("replacement waits for"), 5)
	if err != nil {
		return w.takeBack(ctx, fresh, err)
	}
	if err := w.retire(ctx, cluster, olds, "replace"); err != nil {
		return w.takeBack(ctx, fresh, err)
	}
	for _, member := range present(cluster, fresh) {
		if err := w.resume(ctx, cluster, member, "employ"); err != nil {
			return err
		}
		if err := w.InService(member, cluster); err != nil {
			return err
		}
	}
	if err := w.Evidence("joined", names(cluster, fresh)); err != nil {
		return err
	}
	return w.leave(ctx, cluster, olds)
}

// exchange returns the members that leave and the members that replace them.
func (w work) exchange() (olds, fresh []adapter.Member, err error) {
	var change adapter.ReplaceChange
	if err := w.Change(&change); err != nil {
		return nil, nil, err
	}
	for _, member := range w.Dispatch().Members {
		if member.ID == change.ReplacementID {
			fresh = append(fresh, member)
		}
	}
	olds = slices.DeleteFunc(w.Targets(), func(m adapter.Member) bool { return m.ID == change.ReplacementID })
	return olds, fresh, nil
}

// retire brings workers to where they can be taken out: drained, or given up under force. After
// that the operation cannot be undone.
func (w work) retire(ctx context.Context, cluster layout.Cluster, members []adapter.Member, verb string) error {
	members = present(cluster, members)
	if !w.Force() {
		return w.quiesce(ctx, cluster, members, verb, w.drainedOrDead, w.Commit)
	}
	if err := w.Commit(); err != nil {
		return err
	}
	return w.giveUp(ctx, cluster, members, verb)
}

// clearScript waits until nothing runs on $1 any more: slurmctld needs some time to give a job up.
const clearScript = `for i in $(seq 40); do
    jobs=$(timeout 10 squeue -a -h -w "$1" -t ` + onNode + ` -o %A) && ` +
	`test -z "$jobs" && exit 0
    sleep 0.5
done
exit 1`

// emptyScript cancels the jobs on $1 and waits until none is left.
const emptyScript = `timeout 10 squeue -a -h -w "$1" -t RUNNING,SUSPENDED,STOPPED,CONFIGURING -o %A | ` +
	`xargs -r timeout 10 scancel
` + clearScript

// giveUp sets workers down in slurmctld, so that it queues their jobs again or ends them.
func (w work) giveUp(ctx context.Context, cluster layout.Cluster, members []adapter.Member, verb string) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	if err := w.noteLost(ctx, cluster, members); err != nil {
		return err
	}
	if err := w.setState(ctx, cluster, members, "down", w.reason("forced "+verb), "give-up"); err != nil {
		return err
	}
	for _, member := range members {
		if err := reached(w.Try(ctx, member, "stop-slurmd", adapter.StopProcess{Name: "slurmd"})); err != nil {
			return err
		}
		worker, _ := cluster.Of(member.ID)
		task := adapter.RunCommand{Command: []string{"sh", "-c", clearScript, "clear", worker.Name()}}
		if _, err := w.Try(ctx, controller, "clear-"+worker.Name(), task); err != nil {
			return err
		}
	}
	return nil
}

// leave stops workers, takes them out of slurm.conf and lets their nodes prove that nothing is
// left.
func (w work) leave(ctx context.Context, cluster layout.Cluster, members []adapter.Member) error {
	w.Progress("leaving", 75, farewell(members))
	for _, process := range []string{login.Process, "slurmd", "munged"} {
		if err := w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
			return reached(w.Try(ctx, member, "end-"+process, adapter.StopProcess{Name: process}))
		}); err != nil {
			return err
		}
	}
	if _, err := w.reshape(ctx, "leave", func(c *layout.Cluster) error {
		for _, member := range members {
			c.Remove(member.ID)
		}
		return nil
	}, w.restart); err != nil {
		return err
	}
	if err := w.Evidence("left", names(cluster, members)); err != nil {
		return err
	}
	w.Progress("tearing down", 85, "deleting sandboxes and verifying that nothing is left")
	return w.Teardown(ctx, members)
}

// farewell returns the progress message of workers that leave. It names the nodes that may delay
// them.
func farewell(members []adapter.Member) string {
	message := "stopping " + report.Counted(len(members), "member") + " and leaving Slurm"
	for _, member := range members {
		if !member.Node.IsReachable() {
			message += fmt.Sprintf("; node %s does not answer, and is awaited unless forced", member.Node.Name)
		}
	}
	return message
}
