package reconcile_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	blockers "github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// nothingLeft is a residue task's result.
const nothingLeft = `{"residue":{"sandbox":false,"processes":[],"mounts":[],"files":0,"bytes":0,"names":[]}}`

// healthy is an agent on which every probe passes and nothing is left.
func healthy(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
	if task.Kind == lifecycle.TaskProbe {
		return lifecycle.TaskSucceeded, `{"ok":true,"attempts":1,"detail":"fine"}`
	}
	return lifecycle.TaskSucceeded, nothingLeft
}

// running is an instance that runs on the lab's node.
func (l *lab) running() *db.Instance {
	l.Helper()
	return l.Instance(l.project, l.stored, lifecycle.InstanceRunning, l.Allocation(l.project, l.node))
}

// ask makes an operation due, as its verb would.
func (l *lab) ask(on *db.Instance, kind lifecycle.OperationKind) *db.Operation {
	l.Helper()
	op := l.Operation(on, kind, lifecycle.OperationPending)
	l.SQL(`UPDATE operation SET dispatch_attempt = 0 WHERE id = $1`, op.ID)
	l.Hub.Wake(event.QueueTopic)
	return op
}

// launch is an instance that was just accepted, with its create.
func (l *lab) launch() (*db.Instance, *db.Operation) {
	l.Helper()
	instance := l.Instance(l.project, l.stored, lifecycle.InstanceCreated, l.Allocation(l.project, l.node))
	return instance, l.ask(instance, lifecycle.InstanceCreate)
}

// decommission is an instance that ran and is to be torn down.
func (l *lab) decommission() (*db.Instance, *db.Operation) {
	l.Helper()
	instance := l.running()
	l.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, instance.ID)
	return instance, l.ask(instance, lifecycle.InstanceDecommission)
}

func (l *lab) member(of *db.Instance) *db.Member {
	l.Helper()
	for _, one := range l.Ent.Member.Query().AllX(l.Context()) {
		if one.InstanceID == of.ID {
			return one
		}
	}
	l.Fatal("the instance has no member")
	return nil
}

func (l *lab) op(id ids.ID) *db.Operation { return l.Ent.Operation.GetX(l.Context(), id) }

// ofOperation and ofInstance are the blockers that the project's viewer sees.
func (l *lab) ofOperation(id ids.ID) []*blocker.Blocker {
	found, err := (&blockers.Service{DB: l.DB}).Operations(l.As(l.reader), []ids.ID{id})
	require.NoError(l.TB, err)
	return found[id]
}

func (l *lab) ofInstance(id ids.ID) []*blocker.Blocker {
	found, err := (&blockers.Service{DB: l.DB}).Instances(l.As(l.reader), []ids.ID{id})
	require.NoError(l.TB, err)
	return found[id]
}

// told returns the types of an instance's events, in order.
func (l *lab) told(of ids.ID) []string {
	var types []string
	for _, one := range l.Ent.Event.Query().Order(db.Asc("seq")).AllX(l.Context()) {
		if one.InstanceID != nil && *one.InstanceID == of {
			types = append(types, one.Type)
		}
	}
	return types
}

// until waits for a state.
func (l *lab) until(what string, is func() bool) {
	l.Helper()
	require.Eventually(l.TB, is, patience, 30*time.Millisecond, what)
}
