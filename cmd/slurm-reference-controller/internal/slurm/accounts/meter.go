// Package accounts meters what a cluster's jobs have used: it reads the cluster's accounting again and again into a
// durable list, which knows each run of a job once.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// Bounds of reading accounting.
const (
	overlap  = 10 * time.Minute // read again each time: slurmctld hands its accounts on late when slurmdbd was away
	rows     = 800              // runs of one task: a node keeps 64 KiB of output
	tasks    = 5                // of one read
	taskTime = 30 * time.Second
	off      = 3 // the script's exit code where accounting is off
)

// script prints runs of jobs that ended after the second $1, or had not ended then, sorted by their end, from line $2
// on. Requeued runs are there too (-D), steps are not (-X).
var script = `grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + ` || exit ` + strconv.Itoa(off) + `
export TZ=UTC
out=$(timeout 20 sacct -a -D -X -n -P -S "$(date -d "@$1" +%Y-%m-%dT%H:%M:%S)" -o ` + fields + `) || exit 1
printf '%s\n' "$out" | grep -E "^[0-9]" | sort -u | tail -n "+$2" | head -n ` + strconv.Itoa(rows)

// Command reads runs of jobs that ended after a second, from a line on.
func Command(since, line string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", script, "usage", since, line}}
}

// Meter keeps the usage of clusters.
type Meter struct{ log *usagelog.Log }

// NewMeter returns the meter that keeps what it reads below a directory.
func NewMeter(dir string) (*Meter, error) {
	log, err := usagelog.New(filepath.Join(dir, "usage"))
	return &Meter{log}, err
}

// Page returns the usage after a cursor. It reads the accounting first when nothing is known after the cursor; a
// cluster that cannot be read now answers what is known.
func (m *Meter) Page(ctx context.Context, call *adapter.Call, after string) (adapter.UsagePage, error) {
	page, err := m.log.Page(call.Instance.ID, after)
	controllers := call.Of(layout.ComponentController)
	if err != nil || len(page.Records) > 0 || len(controllers) == 0 {
		return page, err
	}
	err = m.read(call.Instance.ID, func(step string, command adapter.RunCommand) (adapter.TaskResult, error) {
		return call.Try(ctx, controllers[0], step, command, adapter.Within(taskTime))
	})
	if err != nil {
		call.Log.Warn("the cluster's accounting could not be read; it will be read again", "error", err)
	}
	return m.log.Page(call.Instance.ID, after)
}

// Settle reads what was not read yet during an operation that ends the cluster. That it cannot be read ends no
// operation.
func (m *Meter) Settle(ctx context.Context, run *adapter.Run) error {
	for _, controller := range run.Of(layout.ComponentController) {
		err := m.read(run.Instance().ID, func(step string, command adapter.RunCommand) (adapter.TaskResult, error) {
			return run.Look(ctx, controller, step, command, adapter.Within(taskTime))
		})
		if err != nil {
			run.Log().Warn("the last jobs could not be counted", "error", err)
		}
	}
	return context.Cause(ctx)
}

// read brings the list up to date. Where the overlap alone is more than one read takes, the next part is read without
// it.
func (m *Meter) read(instance string, do func(string, adapter.RunCommand) (adapter.TaskResult, error)) error {
	for n, back := range []time.Duration{overlap, 0} {
		newest, err := m.log.Last(instance)
		if err != nil {
			return err
		}
		since := max(1, newest.To.Add(-back).Unix()) // 0 would be midnight
		for task := range tasks {
			step := fmt.Sprintf("usage-%d-%d", n, task)
			ended, err := m.part(instance, func() (adapter.TaskResult, error) {
				return do(step, Command(strconv.FormatInt(since, 10), strconv.Itoa(task*rows+1)))
			})
			if err != nil || ended {
				return err
			}
		}
	}
	return nil
}

// part adds what one task has read, and reports whether that was the end.
func (m *Meter) part(instance string, do func() (adapter.TaskResult, error)) (ended bool, err error) {
	result, err := do()
	if err != nil {
		return false, err
	}
	if result.ExitCode != nil && *result.ExitCode == off {
		return true, nil
	}
	if result.State != adapter.TaskSucceeded {
		return false, errors.New(strings.TrimSpace(result.Message + " " + result.Stderr))
	}
	records, lines := parse(result.Stdout)
	return lines < rows, m.log.Add(instance, records...)
}
