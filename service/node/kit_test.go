package node_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/node"
)

// verbs keeps the service's fields below those of the kit, which have the same names.
type verbs struct{ *node.Service }

// bench is a platform with an operator.
type bench struct {
	*platformtest.Kit
	verbs
	t        *testing.T
	operator context.Context
	walls    atomic.Int32 // nodes with walls
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	return &bench{Kit: kit, verbs: verbs{&node.Service{DB: kit.DB, Hub: kit.Hub}}, t: t,
		operator: kit.As(kit.Operator())}
}

var sealingKey = base64.StdEncoding.EncodeToString(make([]byte, 32))

func enrolment(name string) node.EnrolInput {
	return node.EnrolInput{
		Name: name, Address: "192.0.2.7", SealingKey: sealingKey, AgentVersion: "1.0.0", BootID: "boot-1",
		Inventory: node.Inventory{CPUs: 8, MemoryMiB: 16_384, GPUs: 2, GPUModel: "H100", GPUsSimulated: true,
			Isolation: lifecycle.IsolationNamespace, Region: "eu-1", SKU: "h100-2", Kernel: "6.1",
			Labels: json.RawMessage(`{"rack": "r1"}`)},
	}
}

// invite mints an enrolment for a name, empty for any, and answers it as a caller.
func (b *bench) invite(name string) (ctx context.Context, text string) {
	b.t.Helper()
	secret, err := b.CreateEnrolment(b.operator, node.EnrolmentInput{Name: name, TTLMinutes: 60})
	require.NoError(b.t, err)
	return b.With(secret.Token), secret.Token
}

// enrolled is a node of the name and its credential.
func (b *bench) enrolled(name string) *node.Enrolled {
	b.t.Helper()
	ctx, _ := b.invite("")
	out, err := b.Enrol(ctx, enrolment(name))
	require.NoError(b.t, err)
	return out
}

var beat = node.HeartbeatInput{AgentVersion: "1.0.0", BootID: "boot-1"}
