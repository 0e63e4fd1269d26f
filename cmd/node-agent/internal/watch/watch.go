// Package watch finds members of a node that were lost and supervised processes that were restarted, for the platform.
package watch

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// foldEvery is how often the restarts of a process that keeps failing are reported at most.
	foldEvery = time.Minute
	// lookPatience bounds a poll of all members: a heartbeat waits for it.
	lookPatience = 2 * time.Second
)

// The reasons for which a member was lost, as the platform names them.
const (
	InitGone      = "INIT_GONE"
	OutOfMemory   = "OUT_OF_MEMORY"
	RestartsSpent = "RESTARTS_SPENT"
	NodeRestarted = "NODE_RESTARTED"
)

// Finding is a member that was lost.
type Finding struct {
	MemberID, Failure string
	// Message says what happened; empty where the reason says all.
	Message string
}

// Restarts is how often a process was restarted.
type Restarts struct {
	MemberID, Since, Process string
	Restarts                 int
}

// Watcher watches the members of one agent.
type Watcher struct {
	dir       string
	sandboxes *sandbox.Manager
	now       func() time.Time
	// boot are the starts of members that a restart of the node has ended.
	boot map[start]bool

	mu       sync.Mutex
	reported map[process]report
}

// start is one start of a member.
type start struct{ member, epoch string }

// process is one start of a supervised process.
type process struct{ member, name, since string }

// report is what the platform has of a process.
type report struct {
	restarts int
	at       time.Time
}

// New watches the members below an agent's state directory. Members without an init count as ended by a restart of the
// node when no member has one: the agent's own restart ends none.
func New(stateDir string, sandboxes *sandbox.Manager, now func() time.Time) *Watcher {
	w := &Watcher{dir: filepath.Join(stateDir, roster.Dir), sandboxes: sandboxes, now: now, boot: map[start]bool{},
		reported: map[process]report{}}
	known := roster.List(w.dir)
	for _, one := range known {
		if one.Alive() {
			return w
		}
	}
	for _, one := range known {
		w.boot[start{one.MemberID, one.Epoch}] = true
	}
	return w
}

// Look polls every member's init for its processes. It returns the members that are lost now, and restarts that the
// platform does not have, at most most of each. An init that does not answer is left out.
func (w *Watcher) Look(ctx context.Context, most int) (lost []Finding, restarts []Restarts) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for _, one := range roster.List(w.dir) {
		if !one.Alive() {
			lost = append(lost, Finding{MemberID: one.MemberID, Failure: w.cause(one)})
			continue
		}
		list := w.processes(ctx, one.MemberID)
		for _, each := range list {
			if each.Spent {
				lost = append(lost, Finding{MemberID: one.MemberID, Failure: RestartsSpent,
					Message: fmt.Sprintf("process %s failed again after %d restarts, and has none left", each.Name,
						each.Restarts)})
				break
			}
		}
		restarts = append(restarts, w.fresh(one.MemberID, list)...)
	}
	return lost[:min(len(lost), most)], restarts[:min(len(restarts), most)]
}

// cause returns why a member's init has ended.
func (w *Watcher) cause(of roster.Record) string {
	switch {
	case w.boot[start{of.MemberID, of.Epoch}]:
		return NodeRestarted
	case w.sandboxes.Killed(of.MemberID, of.Epoch):
		return OutOfMemory
	}
	return InitGone
}

func (w *Watcher) processes(ctx context.Context, memberID string) []wire.Supervised {
	client, err := w.sandboxes.Lookup(ctx, memberID)
	if err != nil || client == nil {
		return nil
	}
	list, err := client.Processes(ctx)
	if err != nil {
		return nil
	}
	return list
}

// fresh returns the restarts that are to be reported: the first of a process at once, further ones once in foldEvery,
// and the last.
func (w *Watcher) fresh(memberID string, list []wire.Supervised) (out []Restarts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range list {
		known := w.reported[process{memberID, one.Name, one.Since}]
		due := one.Spent || w.now().Sub(known.at) >= foldEvery
		if one.Restarts > known.restarts && due {
			out = append(out, Restarts{MemberID: memberID, Since: one.Since, Process: one.Name, Restarts: one.Restarts})
		}
	}
	return out
}

// Reported notes what the platform has, and forgets the members that have no record any more.
func (w *Watcher) Reported(restarts []Restarts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range restarts {
		w.reported[process{one.MemberID, one.Process, one.Since}] = report{restarts: one.Restarts, at: w.now()}
	}
	for of := range w.reported {
		if roster.Read(filepath.Join(w.dir, of.member)) == nil {
			delete(w.reported, of)
		}
	}
}
