package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func (w work) reason(verb string) string {
	return report.ReasonMark + verb + " " + w.Dispatch().OperationID
}

// cordon keeps new work from workers. Slurm has one state for that and for a drain.
func cordon(ctx context.Context, w work) error {
	held, err := w.readRecord(ctx, "record")
	if err != nil {
		return err
	}
	workers := ofComponent(w.Targets(), layout.ComponentWorker) // logins take no jobs
	if err := w.hold(ctx, held.Cluster, workers, w.reason("cordon")); err != nil {
		return err
	}
	return w.Evidence("cordoned", names(held.Cluster, w.Targets()))
}

// uncordon lets workers take work again.
func uncordon(ctx context.Context, w work) error {
	held, err := w.readRecord(ctx, "record")
	if err != nil {
		return err
	}
	for _, member := range ofComponent(w.Targets(), layout.ComponentLogin) {
		if err := w.LoginInService(member, held.Cluster); err != nil {
			return err
		}
	}
	for _, member := range ofComponent(w.Targets(), layout.ComponentWorker) {
		if err := w.resume(ctx, held.Cluster, member, "resume"); err != nil {
			return err
		}
		if err := w.InService(member, held.Cluster); err != nil {
			return err
		}
	}
	return w.Evidence("uncordoned", names(held.Cluster, w.Targets()))
}

// setScript sets a node's state $2 with the reason $3 unless the node has that reason already.
const setScript = `timeout 10 sinfo -a -h -N -n "$1" -o %E | grep -qxF "$3" || ` +
	`timeout 20 scontrol update NodeName="$1" State="$2" Reason="$3"`

// resumeScript puts a node back in service; one that is in service stays so. slurmctld counts a
// node that it resumes as silent until the node has answered, so the script waits for that.
const resumeScript = `state() { timeout 10 sinfo -a -h -N -n "$1" -o %T | head -n 1; }
case "$(state "$1")" in drain*|down*) timeout 20 scontrol update NodeName="$1" State=resume ;; esac
for i in $(seq 60); do
    case "$(state "$1")" in drain*|down*|"") exit 1 ;; *"*") sleep 0.3 ;; *) exit 0 ;; esac
done
echo "$1 is $(state "$1"): it does not answer" >&2
exit 1`

// hold keeps new work from workers.
func (w work) hold(ctx context.Context, cluster layout.Cluster, members []adapter.Member, reason string) error {
	return w.setState(ctx, cluster, members, "drain", reason, "hold")
}

// setState sets the Slurm state of members' nodes with a reason. Step begins the names of the tasks.
func (w work) setState(
	ctx context.Context, cluster layout.Cluster, members []adapter.Member, state, reason, step string,
) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	for _, member := range members {
		worker, ok := cluster.Of(member.ID)
		if !ok {
			return notInCluster(member)
		}
		task := adapter.RunCommand{Command: []string{"sh", "-c", setScript, "set", worker.Name(), state, reason}}
		if _, err := w.Do(ctx, controller, step+"-"+worker.Name(), task); err != nil {
			return err
		}
	}
	return nil
}

// resume puts a worker back in service and waits until slurmctld reaches it.
func (w work) resume(ctx context.Context, cluster layout.Cluster, member adapter.Member, step string) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	worker, ok := cluster.Of(member.ID)
	if !ok {
		return notInCluster(member)
	}
	task := adapter.RunCommand{Command: []string{"sh", "-c", resumeScript, "resume", worker.Name()}}
	_, err = w.Do(ctx, controller, step+"-"+worker.Name(), task)
	return err
}

// drain keeps new work from workers and waits until Slurm reports them as drained. Under force it
// cancels the jobs there.
func drain(ctx context.Context, w work) error {
	targets := ofComponent(w.Targets(), layout.ComponentWorker)
	held, err := w.readRecord(ctx, "record")
	if err != nil {
		return err
	}
	for _, member := range targets {
		if _, ok := held.Of(member.ID); !ok {
			return notInCluster(member)
		}
	}
	goesOn := func() error { return context.Cause(ctx) }
	if err := w.quiesce(ctx, held.Cluster, targets, "drain", w.drainedOnly, goesOn); err != nil {
		return err
	}
	for _, member := range targets {
		worker, _ := held.Of(member.ID)
		detail := daemons.WorkerDetail(held.Cluster, worker)
		if err := w.Member(member.ID, adapter.MemberDrained, adapter.Healthy, detail); err != nil {
			return err
		}
	}
	for _, member := range ofComponent(w.Targets(), layout.ComponentLogin) { // nothing of Slurm's runs there
		if err := w.Member(member.ID, adapter.MemberDrained, adapter.Healthy, nil); err != nil {
			return err
		}
	}
	return nil
}

// A verdict reports whether a polled worker is in the state that an operation needs. Round counts
// the polls.
type verdict func(ctx context.Context, member adapter.Member, seen polled, round int) (bool, error)

// drainedOnly accepts no evidence of a drained worker but Slurm's own report.
func (w work) drainedOnly(_ context.Context, _ adapter.Member, seen polled, _ int) (bool, error) {
	return seen.drained(), nil
}

// drainedOrDead also accepts a worker on which slurmctld has no jobs and which does not answer it,
// when its node reports that its slurmd does not run: what ran there has ended or was queued again.
func (w work) drainedOrDead(ctx context.Context, member adapter.Member, seen polled, round int) (bool, error) {
	if seen.drained() {
		return true, nil
	}
	if !seen.abandoned() || !member.Node.IsReachable() {
		return false, nil
	}
	result, err := w.Try(ctx, member, fmt.Sprintf("inspect-slurmd.%d", round), adapter.InspectProcess{Name: "slurmd"})
	if err != nil {
		return false, err
	}
	process, ok := result.Process()
	return ok && process.State != "running", nil
}

// quiesce keeps new work from workers and waits until done accepts each. The last polls are the
// evidence. When it fails, is canceled or runs out of time, or when last refuses, the workers are
// put back in service.
func (w work) quiesce(
	ctx context.Context, cluster layout.Cluster, members []adapter.Member, verb string, done verdict,
	last func() error,
) (err error) {
	before, err := w.inUse(ctx, cluster, members)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.putBack(ctx, cluster, before)
		}
	}()
	if err := w.hold(ctx, cluster, members, w.reason(verb)); err != nil {
		return err
	}
	if w.Force() {
		done = emptied
		if err := w.forceOut(ctx, cluster, members, verb); err != nil {
			return err
		}
	}
	found := make(map[string]any, len(members))
	for _, member := range members {
		worker, _ := cluster.Of(member.ID)
		seen, err := w.await(ctx, member, worker, done)
		if err != nil {
			return err
		}
		found[member.ID] = map[string]any{
			"node": worker.Name(), "state": seen.State, "jobs": len(seen.Jobs), "reason": seen.Reason,
		}
	}
	w.WaitsFor(nil)
	if err := w.Evidence("drained", found); err != nil {
		return err
	}
	return last()
}

// inUse reports members as draining and returns those that were not drained by this adapter before.
func (w work) inUse(
	ctx context.Context,
	cluster layout.Cluster,
	members []adapter.Member,
) (before []adapter.Member, err error) {
	for _, member := range members {
		worker, _ := cluster.Of(member.ID)
		seen, err := w.poll(ctx, worker, "before-"+worker.Name(), "")
		if err != nil {
			return nil, err
		}
		if !seen.held() {
			before = append(before, member)
		}
		if err := w.Member(member.ID, adapter.MemberDraining, adapter.HealthUnknown, nil); err != nil {
			return nil, err
		}
	}
	return before, nil
}

// await polls a worker until done accepts it, and reports meanwhile what it waits for.
func (w work) await(ctx context.Context, member adapter.Member, worker layout.Worker, done verdict) (polled, error) {
	previous := ""
	for round := 1; ; round++ {
		seen, err := w.poll(ctx, worker, fmt.Sprintf("watch-%s.%d", worker.Name(), round), previous)
		if err != nil {
			return polled{}, err
		}
		settled, err := done(ctx, member, seen, round)
		if err != nil || settled {
			return seen, err
		}
		w.WaitsFor(report.WorkOf(seen.Jobs, member.ID))
		w.Progress("draining", 50, seen.describe(worker))
		if err := rest(ctx, seen); err != nil {
			return polled{}, err
		}
		previous = seen.digest
	}
}

// rest keeps a poll that failed at once from being repeated at once.
func rest(ctx context.Context, seen polled) error {
	if seen.digest != "" {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// putBack puts workers back in service after a drain that did not complete.
func (w work) putBack(ctx context.Context, cluster layout.Cluster, members []adapter.Member) {
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	if clean.Err() != nil {
		return
	}
	w.WaitsFor(nil)
	for _, member := range members {
		err := w.resume(clean, cluster, member, "put-back")
		if err == nil {
			err = w.InService(member, cluster)
		}
		if err != nil {
			w.Log().Error("worker could not be put back in service", "member", member.ID, "error", err)
		}
	}
}

// forceOut cancels the jobs on workers, and keeps in the evidence which jobs were lost. Jobs that do not end, because
// their node does not answer, end when it reports the node to slurmctld as down.
func (w work) forceOut(ctx context.Context, cluster layout.Cluster, members []adapter.Member, verb string) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	if err := w.noteLost(ctx, cluster, members); err != nil {
		return err
	}
	for _, member := range members {
		worker, _ := cluster.Of(member.ID)
		task := adapter.RunCommand{Command: []string{"sh", "-c", emptyScript, "empty", worker.Name()}}
		result, err := w.Try(ctx, controller, "empty-"+worker.Name(), task)
		if err != nil {
			return err
		}
		if result.State == adapter.TaskSucceeded {
			continue
		}
		unanswered := []adapter.Member{member}
		if err := w.setState(ctx, cluster, unanswered, "down", w.reason("forced "+verb), "give-up"); err != nil {
			return err
		}
	}
	return nil
}

// emptied accepts a worker without jobs, whether it answers or not: the meaning of force.
func emptied(_ context.Context, _ adapter.Member, seen polled, _ int) (bool, error) {
	return seen.sure && len(seen.Jobs) == 0, nil
}

// noteLost keeps in the evidence which jobs run on workers that leave under force.
func (w work) noteLost(ctx context.Context, cluster layout.Cluster, members []adapter.Member) error {
	lost := []adapter.Work{}
	for _, member := range members {
		worker, ok := cluster.Of(member.ID)
		if !ok {
			continue
		}
		seen, err := w.poll(ctx, worker, "lost-"+worker.Name(), "")
		if err != nil {
			return err
		}
		lost = append(lost, report.WorkOf(seen.Jobs, member.ID)...)
	}
	return w.Evidence("lostJobs", lost[:min(len(lost), maxLost)])
}

// present returns the members that slurmctld has a node for; the others never came up.
func present(cluster layout.Cluster, members []adapter.Member) (known []adapter.Member) {
	for _, member := range members {
		if _, ok := cluster.Of(member.ID); ok {
			known = append(known, member)
		}
	}
	return known
}
