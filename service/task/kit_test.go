package task_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/task"
)

// verbs keeps the service's fields below those of the kit, which have the same names.
type verbs struct{ *task.Service }

// bench is an instance with one member on a node, an operation under way on it, and the credentials
// of the operation's adapter and of the node's agent.
type bench struct {
	*platformtest.Kit
	verbs
	t         *testing.T
	tenant    *db.Tenant
	project   *db.Project
	instance  *db.Instance
	member    *db.Member
	node      *db.ComputeNode
	operation *db.Operation
	adapter   context.Context
	agent     context.Context
	secret    string // the agent's
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	b := &bench{Kit: kit, verbs: verbs{&task.Service{DB: kit.DB, Hub: kit.Hub}}, t: t}
	b.tenant = kit.Tenant()
	b.project = kit.Project(b.tenant)
	_, stored := kit.Launchable(b.project, "apps")
	b.node, b.secret = kit.Node(4)
	b.instance = kit.Instance(b.project, stored, lifecycle.InstanceRunning, kit.Allocation(b.project, b.node))
	b.operation = kit.Operation(b.instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	b.member = b.memberOf(b.instance)
	b.adapter = kit.With(kit.OperationToken(b.operation, authz.TaskRun, authz.TaskRead))
	b.agent = kit.With(b.secret)
	return b
}

func (b *bench) memberOf(instance *db.Instance) *db.Member {
	b.t.Helper()
	members, err := b.Ent.Member.Query().All(b.t.Context())
	require.NoError(b.t, err)
	for _, member := range members {
		if member.InstanceID == instance.ID {
			return member
		}
	}
	b.t.Fatal("the instance has no member")
	return nil
}

// other is another instance with a member in the project, on the same node or another.
func (b *bench) other(project *db.Project, node *db.ComputeNode) (*db.Instance, *db.Member) {
	b.t.Helper()
	_, stored := b.Launchable(project, "apps")
	instance := b.Instance(project, stored, lifecycle.InstanceRunning, b.Allocation(project, node))
	return instance, b.memberOf(instance)
}

// input is a task that runs a command under the key.
func (b *bench) input(key string) task.RunInput {
	return task.RunInput{
		MemberID: b.member.ID, Kind: lifecycle.TaskRun, Spec: json.RawMessage(`{"command":["true"]}`),
		TimeoutSeconds: 60,
		IdempotencyKey: key,
	}
}

// ask runs a task as the adapter.
func (b *bench) ask(key string) *db.NodeTask {
	b.t.Helper()
	made, err := b.Run(b.adapter, b.input(key))
	require.NoError(b.t, err)
	return made
}

// stored is the task's row as it is now.
func (b *bench) stored(id ids.ID) *db.NodeTask {
	b.t.Helper()
	row, err := b.Ent.NodeTask.Get(b.t.Context(), id)
	require.NoError(b.t, err)
	return row
}

// report reports as the agent.
func (b *bench) report(id ids.ID, state lifecycle.NodeTaskState) (*db.NodeTask, error) {
	in := task.ReportInput{TaskID: id, Fence: 1, State: state}
	if state == lifecycle.TaskSucceeded {
		zero := 0
		in.ExitCode, in.Result, in.Message = &zero, json.RawMessage(`{"exitCode":0}`), "done"
	}
	return b.Report(b.agent, in)
}
