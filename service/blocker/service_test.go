package blocker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	rules "github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/blocker"
)

// bundle is a tenant with an instance on a node, and a reader of its project.
type bundle struct {
	*platformtest.Kit
	*testing.T
	service  *blocker.Service
	project  *db.Project
	reader   *db.User
	node     *db.ComputeNode
	manifest *db.Manifest
}

func setup(t *testing.T) *bundle {
	t.Helper()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	node, _ := kit.Node(0)
	_, stored := kit.Launchable(project, "apps")
	return &bundle{Kit: kit, T: t, service: &blocker.Service{DB: kit.DB}, project: project, node: node,
		manifest: stored, reader: kit.User(tenant, platformtest.In(authz.ProjectViewer, project))}
}

// beat makes a worker process live.
func (b *bundle) beat() {
	b.SQL(`INSERT INTO worker_process (id, host, heartbeat_at, created_at)
		VALUES ('wrk_1', 'h', now() + interval '1 minute', now())
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = now() + interval '1 minute'`)
}

func (b *bundle) ofOperation(id ids.ID) []*rules.Blocker {
	b.Helper()
	found, err := b.service.Operations(b.As(b.reader), []ids.ID{id})
	require.NoError(b, err)
	return found[id]
}

func (b *bundle) ofInstance(id ids.ID) []*rules.Blocker {
	b.Helper()
	found, err := b.service.Instances(b.As(b.reader), []ids.ID{id})
	require.NoError(b, err)
	return found[id]
}

func TestEveryPermissionKeyOfTheTableIsAKey(t *testing.T) {
	t.Parallel()
	for _, rule := range rules.Rules() {
		suffix, ofFamily := strings.CutPrefix(rule.Key, "<family>.")
		if !ofFamily && !strings.Contains(rule.Key, ".") {
			require.Contains(t, []string{"", "force", "cancel"}, rule.Key, rule.Code)
			continue
		}
		if !ofFamily {
			_, err := authz.ParseKey(rule.Key)
			require.NoError(t, err, rule.Code)
			continue
		}
		for _, family := range authz.Families() {
			_, err := authz.FamilyKey(family, suffix)
			require.NoError(t, err, rule.Code)
		}
	}
}

func TestAnOperationThatHasEndedHasNoBlockersAndAnOpenOneHasOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.beat()
	instance := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning, b.Allocation(b.project, b.node))
	ended := b.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	open := b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationPending)
	b.SQL(`UPDATE operation SET next_run_at = now() + interval '1 minute'`) // not queued, however slow the test
	require.Empty(t, b.ofOperation(ended.ID))
	found := b.ofOperation(open.ID)
	require.Len(t, found, 1)
	require.Equal(t, "STEP_RUNNING", found[0].Code)
	require.Equal(t, "waits for its turn", found[0].Message)
	require.Equal(t, "operation.cancel", found[0].PermissionKey)
	require.WithinDuration(t, time.Now(), found[0].Since, 30*time.Second)
}

func TestAnOperationWhoseEndIsRefusedSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.beat()
	instance := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning, b.Allocation(b.project, b.node))
	open := b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	b.SQL(`UPDATE operation SET next_run_at = now() + interval '1 minute',
		end_refusal = '{"state": "FAILED", "times": 4,
		"since": "2026-01-02T03:04:05.000006Z", "why": "the database refuses it with 23514, some_check"}'
		WHERE id = $1`, open.ID)
	found := b.ofOperation(open.ID)
	require.Equal(t, []string{"END_REFUSED", "break_glass.use"}, []string{found[0].Code, found[0].PermissionKey})
	require.Equal(t, "its end as failed could not be recorded (4 tries): the database refuses it with 23514, "+
		"some_check",
		found[0].Message)
	require.Equal(t, "2026-01-02T03:04:05.000006Z", found[0].Since.UTC().Format(time.RFC3339Nano))
}

func TestBlockersShowNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.Project(b.Tenant())
	_, theirs := b.Launchable(other, "apps")
	foreign := b.Instance(other, theirs, lifecycle.InstanceFailed, b.Allocation(other, b.node))
	hidden := b.Operation(foreign, lifecycle.InstanceDecommission, lifecycle.OperationRunning)
	require.Nil(t, b.ofOperation(hidden.ID))
	require.Nil(t, b.ofInstance(foreign.ID))
	for range 5 { // a backlog of theirs is none of the reader's
		b.Operation(foreign, lifecycle.MemberLabel, lifecycle.OperationPending)
	}
	b.SQL(`UPDATE operation SET next_run_at = now() - interval '1 minute'`)
	b.beat()
	instance := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning, b.Allocation(b.project, b.node))
	mine := b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationPending)
	b.SQL(`UPDATE operation SET next_run_at = now() - interval '1 minute' WHERE id = $1`, mine.ID)
	found := b.ofOperation(mine.ID)
	require.Equal(t, "QUEUED", found[0].Code)
	require.Equal(t, "waits for a worker among 1 due operations of its tenant", found[0].Message)
}

func TestAnInstanceTellsOfItselfAndOfItsOpenOperationsInTheOrderOfTheTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.beat()
	instance := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning, b.Allocation(b.project, b.node))
	b.SQL(
		`UPDATE instance SET drift = '[{"code":"MEMBER_UNKNOWN","message":"worker 0 is unknown","memberId":"mem_1","since":"2026-11-20T10:00:00Z"}]'`)
	b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationPending)
	b.SQL(`UPDATE operation SET next_run_at = now() + interval '1 minute'`)
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE', last_seen_at = '2026-11-20T09:00:00Z'`)
	found := b.ofInstance(instance.ID)
	codes := make([]string, len(found))
	for i, one := range found {
		codes[i] = one.Code
	}
	require.Equal(t, []string{"NODE_OFFLINE", "DRIFT", "STEP_RUNNING"}, codes)
	require.Equal(t, time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), found[0].Since.UTC())
	require.Equal(t, "mem_1", found[1].Subject)
	require.Equal(t, time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), found[1].Since.UTC())
	require.Equal(t, "apps.member.replace", found[1].PermissionKey)
}

func TestABatchOfManyIsReadAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.beat()
	var wanted []ids.ID
	for range 40 {
		instance := b.Instance(b.project, b.manifest, lifecycle.InstanceFailed, b.Allocation(b.project, b.node))
		wanted = append(wanted, instance.ID)
	}
	found, err := b.service.Instances(b.As(b.reader), wanted)
	require.NoError(t, err)
	require.Len(t, found, 40)
	for _, id := range wanted {
		require.Equal(t, "INSTANCE_FAILED", found[id][0].Code)
		require.Equal(t, "apps.instance.delete", found[id][0].PermissionKey)
		require.Equal(t, "user", found[id][0].Owner)
	}
}

// A document that only speaks of inspections, in its documentation, in a field of another name's text or as an empty
// list, names none.
func TestInspectionsAreLookedForInTheDocumentAndNotInItsText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	instance := b.Instance(b.project, b.manifest, lifecycle.InstanceRunning, b.Allocation(b.project, b.node))
	b.SQL(`UPDATE adapter SET narrow_calls = true`)
	b.SQL(`UPDATE instance SET health = 'UNKNOWN'`)
	b.SQL(`ALTER TABLE manifest DISABLE TRIGGER USER`)
	for more, named := range map[string]bool{
		`"docs": "name \"inspections\" in it"`: false, `"runtimeProfile": {"inspections": [{}]}`: false,
		`"inspections": []`: false, `"inspections": null`: false,
		`"inspections": [{"name": "log", "command": ["true"]}]`: true,
	} {
		b.SQL(`UPDATE manifest SET document = convert_to((convert_from($1, 'UTF8')::jsonb || ('{' || $2::text
			|| '}')::jsonb)::text, 'UTF8')`,
			b.manifest.Document, more)
		narrowed := false
		for _, one := range b.ofInstance(instance.ID) {
			narrowed = narrowed || one.Code == "CALLS_NARROWED"
		}
		require.Equal(t, !named, narrowed, more)
	}
	b.SQL(`UPDATE manifest SET document = convert_to('{"docs": "\u0000", "inspections": [{}]}', 'UTF8')`)
	b.ofInstance(instance.ID) // an old document with a character that JSON in the database cannot hold breaks no list
}
