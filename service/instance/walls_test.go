package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// nests makes the app's one active version one that needs these walls.
func (b *bundle) needs(walls map[string]any) {
	b.t.Helper()
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED'`)
	document := b.document("2.0.0")
	document["isolation"] = walls
	b.stored = b.Manifest(lifecycle.StageActive, document)
}

// offer has every node report what it offers.
func (b *bundle) offer(walls string) {
	b.t.Helper()
	b.SQL(`UPDATE compute_node SET walls = $1`, walls)
}

const (
	containers = `{"classes": ["CONTAINER", "WHOLE_NODE"], "profiles": ["SERVICE", "NESTING"], "gaps": []}`
	daemons    = `{"classes": ["CONTAINER", "WHOLE_NODE"], "profiles": ["SERVICE"], "gaps": []}`
	broken     = `{"classes": [], "profiles": [], "gaps": [{"wall": "RUNTIME", "reason": "crun is not in PATH"}]}`
)

func (b *bundle) members() []*db.Member {
	b.t.Helper()
	found, err := b.Ent.Member.Query().Order(db.Asc(dbmember.FieldID)).All(b.t.Context())
	require.NoError(b.t, err)
	return found
}

func TestMembersGetTheWallsThatTheirManifestDeclares(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.needs(map[string]any{"profile": "nesting", "max_pids": 512})
	b.offer(containers)
	b.SQL(`UPDATE allocation SET devices = '[{"uuid": "GPU-1", "index": 0, "minor": 0}]' WHERE id = $1`, b.one.ID)
	b.launched()
	for _, member := range b.members() {
		require.Equal(t, isolation.Nesting, member.Profile)
		require.Equal(t, isolation.Container, *member.IsolationClass)
		require.Equal(t, 512, member.MaxPids)
	}
	var bound isolation.Binding
	require.NoError(t, b.Admin.QueryRow(t.Context(),
		`SELECT platform.member_binding(id) FROM member WHERE allocation_id = $1 LIMIT 1`, b.one.ID).Scan(&bound))
	class := isolation.Container
	require.Equal(t, isolation.Binding{AllocationID: b.one.ID, Exclusive: true, Profile: isolation.Nesting,
		Class: &class, Pids: 512, Devices: []isolation.Device{{UUID: "GPU-1"}}}, bound)
}

func TestWhatTheNodeLacksIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.needs(map[string]any{"profile": "nesting"})
	for name, one := range map[string]struct {
		walls string
		code  fault.Code
	}{
		"a profile":        {daemons, fault.ProfileUnavailable},
		"its runtime":      {broken, fault.RuntimeMissing},
		"the class at all": {`{"classes": ["SANDBOX"], "profiles": ["NESTING"], "gaps": []}`, ""},
	} {
		b.offer(one.walls)
		options, err := b.service.LaunchOptions(b.ctx, b.project.ID, b.app.Slug, "")
		require.NoError(t, err)
		before := b.written()
		if one.code == "" { // a stronger class will do
			require.Empty(t, options.Allocations[0].Reasons, name)
			require.Equal(t, isolation.Sandbox, options.Allocations[0].Class, name)
			require.Equal(t, isolation.Nesting, options.Profile, name)
			continue
		}
		require.Equal(t, one.code, options.Allocations[0].Reasons[0].Code, name)
		_, err = b.service.Launch(b.ctx, b.launch())
		platformtest.Refused(t, err, fault.Incompatible, "input.allocationIds.0")
		require.Equal(t, one.code, fault.From(err).Reasons[0].Code, name)
		require.Equal(t, before, b.written(), name)
	}
}

func TestPolicyForbidsNestingAndDemandsMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.needs(map[string]any{"profile": "nesting"})
	b.offer(containers)
	before := b.written()
	b.Policy(nil, `{"memberProfiles": {"deny": ["NESTING"]}}`)
	_, err := b.service.Launch(b.ctx, b.launch())
	platformtest.Refused(t, err, fault.PolicyDenied, "input.version")
	require.Equal(t, fault.ProfileDenied, fault.From(err).Reasons[0].Code)
	b.Policy(nil, `{"isolationClasses": {"allow": ["VM"]}}`)
	_, err = b.service.Launch(b.ctx, b.launch())
	platformtest.Refused(t, err, fault.Incompatible, "input.allocationIds.0")
	require.Contains(t, fault.From(err).Reasons[0].Message, "does not offer the isolation class VM")
	b.Policy(b.project, `{"isolationClasses": {"deny": ["VM"]}}`)
	_, err = b.service.Launch(b.ctx, b.launch())
	platformtest.Refused(t, err, fault.PolicyDenied, "input.version")
	require.Equal(t, fault.ClassDenied, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())
	b.Policy(b.project, `{}`)
	b.Policy(nil, `{"isolationClasses": {"deny": ["CONTAINER"]}}`)
	b.launched()
	require.Equal(t, isolation.WholeNode, *b.members()[0].IsolationClass, "policy demands more than the app")
}

func TestAVersionThatNeedsOtherWallsIsAnotherInstance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.offer(containers)
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	b.needs(map[string]any{"profile": "nesting", "class": "vm"})
	before := b.written()
	_, err := b.service.Upgrade(b.ctx, upgradeOf(started.Instance.ID, "u", func(in *instance.UpgradeInput) {
		in.Version = "2.0.0"
	}))
	platformtest.Refused(t, err, fault.Incompatible, "input.version")
	reasons := fault.From(err).Reasons
	require.Equal(t, []fault.Code{fault.ProfileUnavailable, fault.ClassUnavailable},
		[]fault.Code{reasons[0].Code, reasons[1].Code})
	require.Equal(t, before, b.written())
}
