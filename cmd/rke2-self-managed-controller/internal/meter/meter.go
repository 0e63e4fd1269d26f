// Package meter counts how long pods have held GPUs: it reads a cluster's pods whenever the platform reads usage, and
// writes what they held since the last poll into a durable list.
package meter

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// GPUSeconds is the dimension: shown and not priced, since the platform itself meters the GPUs that are rented.
const GPUSeconds = "pod.gpu_seconds"

// step is what a pod's time is counted in: a stretch ends with a whole one or with the pod.
const step = time.Minute

// Meter keeps the usage of clusters.
type Meter struct {
	log *usagelog.Log
	now func() time.Time

	mu sync.Mutex
	// until is up to when each pod of an instance that was seen last is counted.
	until map[string]map[string]time.Time
}

// New returns the meter that keeps what it counts below a directory.
func New(dir string) (*Meter, error) {
	log, err := usagelog.New(filepath.Join(dir, "usage"))
	return &Meter{log: log, now: time.Now, until: map[string]map[string]time.Time{}}, err
}

// Page returns the usage after a cursor. It reads the pods first when nothing is known after the cursor; for a cluster
// that cannot be reached now it returns what is known.
func (m *Meter) Page(ctx context.Context, call *adapter.Call, after string) (adapter.UsagePage, error) {
	page, err := m.log.Page(call.Instance.ID, after)
	servers := machine.Reached(call.Of(machine.Server), nil)
	if err != nil || len(page.Records) > 0 || len(servers) == 0 {
		return page, err
	}
	result, err := call.Try(ctx, servers[0], "gpus", machine.GPUPods(), adapter.Within(machine.Quick))
	if err = m.count(call.Instance.ID, result, err, memberOf(call.Members)); err != nil {
		call.Log.Warn("the cluster's pods could not be counted; they will be counted again", "error", err)
	}
	return m.log.Page(call.Instance.ID, after)
}

// Settle counts what was not counted yet before an operation ends the cluster. That it cannot be read ends no
// operation.
func (m *Meter) Settle(ctx context.Context, run *adapter.Run) {
	for _, on := range machine.Reached(run.Of(machine.Server), nil) {
		if !run.Reaches(on) {
			continue
		}
		result, err := run.Look(ctx, on, "gpus", machine.GPUPods(), adapter.Within(machine.Quick))
		if err = m.count(run.Instance().ID, result, err, memberOf(run.Dispatch().Members)); err == nil {
			return
		}
		run.Log().Warn("the last pods could not be counted", "error", err)
	}
}

// memberOf finds the member of a Node.
func memberOf(members []adapter.Member) map[string]string {
	of := map[string]string{}
	for _, member := range members {
		of[machine.Name(member)] = member.ID
	}
	return of
}

// count writes what the pods of a look have held since the last one.
func (m *Meter) count(instance string, result adapter.TaskResult, err error, members map[string]string) error {
	if err != nil {
		return err
	}
	if result.State != adapter.TaskSucceeded {
		return fmt.Errorf("list pods: %s %s", result.Message, strings.TrimSpace(result.Stderr))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	counted, err := m.counted(instance)
	if err != nil {
		return err
	}
	var records []adapter.UsageRecord
	seen := map[string]time.Time{}
	for _, one := range machine.GPUPodsOf(result) {
		from, to := one.Since, m.now().UTC().Truncate(step)
		if last, ok := counted[one.UID]; ok {
			from = last
		}
		if !one.Ended.IsZero() {
			to = one.Ended
		}
		seen[one.UID] = from
		if !to.After(from) {
			continue
		}
		seen[one.UID] = to
		// The id has the pod and the begin of the stretch, which the last record of the pod fixes.
		records = append(records, adapter.UsageRecord{
			ID: GPUSeconds + "/" + one.UID + "/" + strconv.FormatInt(from.Unix(), 10), Dimension: GPUSeconds,
			Quantity: strconv.FormatInt(int64(to.Sub(from)/time.Second)*int64(one.GPUs), 10), From: from, To: to,
			MemberID: members[one.Node], Session: "pod-" + one.UID})
	}
	if err := m.log.Add(instance, records...); err != nil {
		return err
	}
	if result.Truncated { // the pods that the node has cut off are counted when a look has them again
		maps.Copy(counted, seen)
		seen = counted
	}
	m.until[instance] = seen
	return nil
}

// counted is up to when each pod is counted: as of the last poll, or after a start as the list states.
func (m *Meter) counted(instance string) (map[string]time.Time, error) {
	if held, ok := m.until[instance]; ok {
		return held, nil
	}
	held := map[string]time.Time{}
	err := m.log.Each(instance, func(record adapter.UsageRecord) {
		held[strings.TrimPrefix(record.Session, "pod-")] = record.To
	})
	return held, err
}
