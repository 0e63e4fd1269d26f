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

// cordon keeps new work from workers. Slurm has one word for that and for a drain.
func cordon(ctx context.Context, w work) error {
	held, err := w.readRoll(ctx, "record")
	if err != nil {
		return err
	}
	if err := w.hold(ctx, held.Cluster, w.Targets(), w.reason("cordon")); err != nil {
		return err
	}
	return w.Evidence("cordoned", names(held.Cluster, w.Targets()))
}

// uncordon lets workers take work again.
func uncordon(ctx context.Context, w work) error {
	held, err := w.readRoll(ctx, "record")
	if err != nil {
		return err
	}
	for _, member := range w.Targets() {
		if err := w.resume(ctx, held.Cluster, member, "resume"); err != nil {
			return err
		}
		if err := w.InService(member, held.Cluster); err != nil {
			return err
		}
	}
	return w.Evidence("uncordoned", names(held.Cluster, w.Targets()))
}

// setScript sets a node's state $2 with the reason $3 unless it has that reason already.
const setScript = `timeout 10 sinfo -a -h -N -n "$1" -o %E | grep -qxF "$3" || timeout 20 scontrol update NodeName="$1" State="$2" Reason="$3"`

// resumeScript puts a node back in service; one that is in service stays so. slurmctld takes a node it
// resumes for silent until it has asked it, so the script waits for its answer.
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

func (w work) setState(ctx context.Context, cluster layout.Cluster, members []adapter.Member, state, reason, step string) error {
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

// drain keeps new work from workers and waits until Slurm says that they are drained. Under force it
// cancels what runs there.
func drain(ctx context.Context, w work) error {
	targets := w.Targets()
	held, err := w.readRoll(ctx, "record")
	if err != nil {
		return err
	}
	for _, member := range targets {
		if _, ok := held.Of(member.ID); !ok {
			return notInCluster(member)
		}
	}
	if err := w.quiesce(ctx, held.Cluster, targets, "drain", w.drainedOnly, func() error { return context.Cause(ctx) }); err != nil {
		return err
	}
	for _, member := range targets {
		worker, _ := held.Of(member.ID)
		if err := w.Member(member.ID, adapter.MemberDrained, adapter.Healthy, daemons.WorkerDetail(held.Cluster, worker)); err != nil {
			return err
		}
	}
	return nil
}

// verdict says whether a worker that was looked at is as an operation needs it. Round counts the looks.
type verdict func(ctx context.Context, member adapter.Member, seen sight, round int) (bool, error)

// drainedOnly takes nothing for drained but Slurm's own word.
func (w work) drainedOnly(_ context.Context, _ adapter.Member, seen sight, _ int) (bool, error) {
	return seen.drained(), nil
}

// drainedOrDead also takes a worker on which slurmctld has no jobs and which does not answer it, when
// its node has said that its slurmd does not run: what was there has ended or was queued again.
func (w work) drainedOrDead(ctx context.Context, member adapter.Member, seen sight, round int) (bool, error) {
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

// quiesce keeps new work from workers and waits until each is as done says. What it saw at the end is
// the evidence. When it fails, is canceled or runs out of time, or when last refuses, the workers are
// put back in service.
func (w work) quiesce(ctx context.Context, cluster layout.Cluster, members []adapter.Member, verb string, done verdict, last func() error) (err error) {
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
		found[member.ID] = map[string]any{"node": worker.Name(), "state": seen.State, "jobs": len(seen.Jobs), "reason": seen.Reason}
	}
	w.WaitsFor(nil)
	if err := w.Evidence("drained", found); err != nil {
		return err
	}
	return last()
}

// inUse reports members as draining and answers those that were not held before.
func (w work) inUse(ctx context.Context, cluster layout.Cluster, members []adapter.Member) (before []adapter.Member, err error) {
	for _, member := range members {
		worker, _ := cluster.Of(member.ID)
		seen, err := w.see(ctx, worker, "before-"+worker.Name(), "")
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

// await looks at a worker until it is as done says, and tells what it waits for.
func (w work) await(ctx context.Context, member adapter.Member, worker layout.Worker, done verdict) (sight, error) {
	previous := ""
	for round := 1; ; round++ {
		seen, err := w.see(ctx, worker, fmt.Sprintf("watch-%s.%d", worker.Name(), round), previous)
		if err != nil {
			return sight{}, err
		}
		settled, err := done(ctx, member, seen, round)
		if err != nil || settled {
			return seen, err
		}
		w.WaitsFor(report.WorkOf(seen.Jobs, member.ID))
		w.Progress("draining", 50, seen.describe(worker))
		if err := rest(ctx, seen); err != nil {
			return sight{}, err
		}
		previous = seen.digest
	}
}

// rest keeps a look that failed at once from being repeated at once.
func rest(ctx context.Context, seen sight) error {
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

// putBack puts workers back in service after a drain that did not come to its end.
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

// forceOut cancels what runs on workers, and keeps in the evidence what was lost. Jobs that do not end,
// because their node does not answer, are ended by telling slurmctld that it is down.
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
		if err := w.setState(ctx, cluster, []adapter.Member{member}, "down", w.reason("forced "+verb), "give-up"); err != nil {
			return err
		}
	}
	return nil
}

// emptied takes a worker without jobs for drained, whether it answers or not: what force asks for.
func emptied(_ context.Context, _ adapter.Member, seen sight, _ int) (bool, error) {
	return seen.sure && len(seen.Jobs) == 0, nil
}

// noteLost keeps in the evidence which jobs run on workers that are about to go under force.
func (w work) noteLost(ctx context.Context, cluster layout.Cluster, members []adapter.Member) error {
	lost := []adapter.Work{}
	for _, member := range members {
		worker, ok := cluster.Of(member.ID)
		if !ok {
			continue
		}
		seen, err := w.see(ctx, worker, "lost-"+worker.Name(), "")
		if err != nil {
			return err
		}
		lost = append(lost, report.WorkOf(seen.Jobs, member.ID)...)
	}
	return w.Evidence("lostJobs", lost[:min(len(lost), maxLost)])
}

// present drops members that slurmctld has no node of: they never came up.
func present(cluster layout.Cluster, members []adapter.Member) (known []adapter.Member) {
	for _, member := range members {
		if _, ok := cluster.Of(member.ID); ok {
			known = append(known, member)
		}
	}
	return known
}
