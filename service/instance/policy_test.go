package instance_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// reason asserts that a refusal has this reason at this path.
func reason(t *testing.T, err error, code, because fault.Code, path string) {
	t.Helper()
	require.True(t, fault.Is(err, code), "want %s: %v", code, err)
	for _, one := range fault.From(err).Reasons {
		if one.Code == because && one.Path == path {
			return
		}
	}
	require.Failf(t, "another reason", "want %s at %s: %+v", because, path, fault.From(err).Reasons)
}

func TestPolicyRefusesALaunchByEveryRuleAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET region = 'a1', sku = 'h100'`)
	before := b.written()
	for document, want := range map[string]struct {
		code fault.Code
		path string
	}{
		`{"apps":{"deny":["` + b.app.Slug + `"]}}`:              {fault.AppDenied, "input.appSlug"},
		`{"versions":{"allow":["` + b.app.Slug + `@>=2"]}}`:     {fault.VersionDenied, "input.version"},
		`{"operatingModes":{"deny":["TENANT_DEDICATED"]}}`:      {fault.ModeDenied, "input.operatingMode"},
		`{"controlPlaneScopes":{"deny":["PROJECT"]}}`:           {fault.ModeDenied, "input.operatingMode"},
		`{"maxMembersPerInstance":2}`:                           {fault.MembersCeiling, "input.components"},
		`{"maxMembers":2}`:                                      {fault.MembersCeiling, "input.components"},
		`{"maxInstances":0}`:                                    {fault.InstancesCeiling, "input.projectId"},
		`{"maxGpus":7}`:                                         {fault.GPUsCeiling, "input.allocationIds"},
		`{"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`: {fault.SpendingCeiling, "input.allocationIds"},
		`{"artifactSources":{"allow":["elsewhere.example"]}}`:   {fault.SourceDenied, "input.version"},
		`{"regions":{"allow":["b1"]}}`:                          {fault.RegionDenied, "input.allocationIds.1"},
		`{"skus":{"deny":["h100"]}}`:                            {fault.SKUDenied, "input.allocationIds.0"},
	} {
		b.Policy(b.project, document)
		_, err := b.service.Launch(b.ctx, b.launch())
		reason(t, err, fault.PolicyDenied, want.code, want.path)
	}
	b.Policy(b.project, `{}`)
	b.Policy(nil, `{"final":{"regions":["a1"]}}`)
	_, err := b.service.Launch(b.ctx, b.launch())
	reason(t, err, fault.PolicyDenied, fault.PlatformFinal, "input.allocationIds.0")
	require.Equal(t, before, b.written())
	refusals := 0
	for _, entry := range b.denials("apps.instance.create") {
		refusals += entry.Repeats
	}
	require.Equal(t, 13, refusals, "each is in the audit")

	b.ListPrice("h100", "EUR", "0.000005")
	b.Policy(nil,
		`{"regions":{"allow":["a1"]},"maxMembers":3,"maxGpus":8,"maxInstances":1,"maxHourlyCost":{"amountMicros":10,"currency":"EUR"}}`)
	b.launched() // exactly as far as the ceilings reach
	third := b.allocation()
	b.SQL(`UPDATE allocation SET region = 'a1', sku = 'h100' WHERE id = $1`, third.ID)
	_, err = b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey, in.AllocationIDs = "other", "k2", []ids.ID{third.ID}
	}))
	for _, one := range []struct {
		code fault.Code
		path string
	}{{fault.InstancesCeiling, "input.projectId"}, {fault.MembersCeiling, "input.components"},
		{fault.GPUsCeiling, "input.allocationIds"}, {fault.SpendingCeiling, "input.allocationIds"}} {
		reason(t, err, fault.PolicyDenied, one.code, one.path)
	}
}

func TestAnEntitlementReachesAsFarAsItsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.written()
	for limit, want := range map[string]struct {
		code fault.Code
		path string
	}{
		`max_members = 2`:                          {fault.EntitlementLimit, "input.components"},
		`max_gpus = 7`:                             {fault.EntitlementLimit, "input.allocationIds"},
		`versions = '[">=2"]'`:                     {fault.VersionDenied, "input.version"},
		`expires_at = now() - interval '1 second'`: {fault.NotEntitled, "input.appSlug"},
	} {
		b.SQL(`UPDATE entitlement SET max_members = NULL, max_gpus = NULL, versions = NULL, expires_at = NULL`)
		b.SQL(`UPDATE entitlement SET ` + limit)
		_, err := b.service.Launch(b.ctx, b.launch())
		reason(t, err, fault.NotEntitled, want.code, want.path)
	}
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE entitlement SET max_instances = 1, max_members = 3, max_gpus = 8, versions = '["9","1"]', expires_at
		= now() + interval '1 hour'`)
	b.launched()
	third := b.allocation()
	_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey, in.AllocationIDs = "other", "k2", []ids.ID{third.ID}
	}))
	reason(t, err, fault.NotEntitled, fault.EntitlementLimit, "input.appSlug")
}

func TestOfTwoLaunchesAtOnceTheCeilingLetsOneWin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Policy(b.project, `{"maxInstances":1}`)
	errs := make(chan error, 2)
	for i, allocation := range []ids.ID{b.one.ID, b.two.ID} {
		go func() {
			_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
				in.Name, in.IdempotencyKey, in.AllocationIDs = fmt.Sprint("demo-", i), fmt.Sprint("k", i),
					[]ids.ID{allocation}
			}))
			errs <- err
		}()
	}
	one, other := <-errs, <-errs
	require.NotEqual(t, one == nil, other == nil, "%v, %v", one, other)
	for _, err := range []error{one, other} {
		if err != nil {
			reason(t, err, fault.PolicyDenied, fault.InstancesCeiling, "input.projectId")
		}
	}
	require.Equal(t, 1, b.Count("instance", ""))
}

// TestNothingCommitsThatRestsOnAnOlderPolicy has a policy written while a launch is on its way: the launch waits
// for the writer and meets what it wrote.
func TestNothingCommitsThatRestsOnAnOlderPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	locked, done := make(chan struct{}), make(chan error, 1)
	release := make(chan struct{})
	go func() {
		done <- b.DB.Write(b.As(b.Operator()), func(ctx context.Context, t *tx.Tx) error {
			if err := overlay.Lock(ctx, t, b.project.ID, true); err != nil {
				return err
			}
			close(locked)
			<-release
			return t.PolicyOverlay.Create().SetID(ids.New(ids.PolicyOverlay)).SetScope(lifecycle.PolicyProject).
				SetTenantID(b.tenant.ID).
				SetProjectID(b.project.ID).SetRevision(1).SetDocument([]byte(`{"maxInstances":0}`)).Exec(ctx)
		})
	}()
	<-locked
	launched := make(chan error, 1)
	go func() { _, err := b.service.Launch(b.ctx, b.launch()); launched <- err }()
	require.Eventually(t, func() bool { // the launch waits for the level's lock
		return b.Count("pg_locks",
			"locktype = 'advisory' AND NOT granted AND classid = 7368556 AND database = (SELECT oid FROM pg_database "+
				"WHERE datname = current_database())") == 1
	}, soon, soon/1000)
	close(release)
	require.NoError(t, <-done)
	reason(t, <-launched, fault.PolicyDenied, fault.InstancesCeiling, "input.projectId")
	require.Zero(t, b.Count("instance", ""))
}

func TestLaunchOptionsTellPolicyAndEntitlement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET region = 'a1' WHERE id = $1`, b.one.ID)
	b.SQL(`UPDATE allocation SET region = 'b1' WHERE id = $1`, b.two.ID)
	b.Policy(b.project, `{"regions":{"deny":["a1"]}}`)
	codes := func() (entitled bool, codes map[ids.ID][]fault.Code) {
		options, err := b.service.LaunchOptions(b.ctx, b.project.ID, b.app.Slug, "")
		require.NoError(t, err)
		codes = make(map[ids.ID][]fault.Code)
		for _, one := range options.Allocations {
			for _, reason := range one.Reasons {
				codes[one.Allocation.ID] = append(codes[one.Allocation.ID], reason.Code)
			}
		}
		return options.Entitled, codes
	}
	entitled, found := codes()
	require.True(t, entitled)
	require.Equal(t, map[ids.ID][]fault.Code{b.one.ID: {fault.RegionDenied}}, found)
	b.Policy(b.project, `{"apps":{"allow":[]}}`)
	b.SQL(`UPDATE entitlement SET max_gpus = 3`)
	_, found = codes()
	require.Equal(t, map[ids.ID][]fault.Code{b.one.ID: {fault.EntitlementLimit, fault.AppDenied},
		b.two.ID: {fault.EntitlementLimit, fault.AppDenied}}, found)
	b.SQL(`UPDATE entitlement SET expires_at = now() - interval '1 second'`)
	entitled, _ = codes()
	require.False(t, entitled)
}

// What the options call compatible can be launched: both check ceilings, limits of the entitlement, mode and quota.
func TestLaunchOptionsAgreeWithTheLaunch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy, sql string
		code        fault.Code
	}{
		"open":                         {`{}`, ``, ""},
		"no instance more":             {`{"maxInstances":0}`, ``, fault.InstancesCeiling},
		"fewer members":                {`{"maxMembers":0}`, ``, fault.MembersCeiling},
		"fewer members in an instance": {`{"maxMembersPerInstance":0}`, ``, fault.MembersCeiling},
		"fewer GPUs":                   {`{"maxGpus":0}`, ``, fault.GPUsCeiling},
		"a spending ceiling": {`{"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`,
			``, fault.SpendingCeiling},
		"the mode":                    {`{"operatingModes":{"deny":["TENANT_DEDICATED"]}}`, ``, fault.ModeDenied},
		"the control plane's scope":   {`{"controlPlaneScopes":{"deny":["PROJECT"]}}`, ``, fault.ModeDenied},
		"the entitlement's members":   {`{}`, `UPDATE entitlement SET max_members = 0`, fault.EntitlementLimit},
		"the entitlement's instances": {`{}`, `UPDATE entitlement SET max_instances = 0`, fault.EntitlementLimit},
		"the project's quota":         {`{}`, `UPDATE project SET max_members = 0`, fault.LimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Policy(b.project, c.policy)
			if c.sql != "" {
				b.SQL(c.sql)
			}
			options, err := b.service.LaunchOptions(b.ctx, b.project.ID, b.app.Slug, "")
			require.NoError(t, err)
			said := make(map[ids.ID]bool)
			for _, one := range options.Allocations {
				said[one.Allocation.ID] = len(one.Reasons) == 0
				if c.code != "" {
					codes := make([]fault.Code, len(one.Reasons))
					for i, reason := range one.Reasons {
						codes[i] = reason.Code
					}
					require.Contains(t, codes, c.code)
				}
			}
			_, err = b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
				in.AllocationIDs = in.AllocationIDs[:1]
			}))
			require.Equal(t, err == nil, said[b.one.ID], "the launch says %v", err)
			require.Equal(t, c.code == "", err == nil)
		})
	}
}

func TestPolicyRulesUpgradesAndNeverTheWayBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	b.SQL(`UPDATE member SET status = 'JOINING'`)
	b.SQL(`UPDATE member SET status = 'ACTIVE'`)
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.stored.ID)
	b.Manifest(lifecycle.StageActive, b.document("2.0.0"))
	upgrade := instance.UpgradeInput{InstanceID: started.Instance.ID, Version: "2.0.0", DeadlineSeconds: 600,
		Reason: "a test", IdempotencyKey: "u"}
	open, err := b.service.PlanUpgrade(b.ctx, upgrade)
	require.NoError(t, err)
	require.True(t, open.Allowed)
	before := b.written()

	b.Policy(b.project, `{"versions":{"deny":["`+b.app.Slug+`@2"]},"artifactSources":{"allow":["elsewhere.example"]}}`)
	_, err = b.service.Upgrade(b.ctx, upgrade)
	reason(t, err, fault.PolicyDenied, fault.VersionDenied, "input.version")
	reason(t, err, fault.PolicyDenied, fault.SourceDenied, "input.version")
	stale := upgrade
	stale.PlanHash = open.Hash
	_, err = b.service.Upgrade(b.ctx, stale)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	shut, err := b.service.PlanUpgrade(b.ctx, upgrade)
	require.NoError(t, err)
	require.False(t, shut.Allowed)
	require.NotEqual(t, open.Hash, shut.Hash)
	policyVerdict := shut.Verdicts[len(shut.Verdicts)-2]
	require.Equal(t, []any{lifecycle.VerdictPolicy, lifecycle.VerdictRefused, fault.VersionDenied},
		[]any{policyVerdict.Source, policyVerdict.Outcome, policyVerdict.Reasons[0].Code})
	require.Equal(t, before, b.written())
	config := upgrade
	config.Version, config.Config = "", []byte(`{"note":"again"}`)
	planned, err := b.service.PlanUpgrade(b.ctx, config)
	require.NoError(t, err)
	require.True(t, planned.Allowed, "a change of config leaves the app as it is: %+v", planned.Verdicts)

	b.Policy(b.project, `{}`)
	b.SQL(`UPDATE entitlement SET versions = '["1"]'`)
	_, err = b.service.Upgrade(b.ctx, upgrade)
	reason(t, err, fault.NotEntitled, fault.VersionDenied, "input.version")
	b.SQL(`UPDATE entitlement SET versions = NULL`)
	accepted, err := b.service.Upgrade(b.ctx, upgrade)
	require.NoError(t, err)
	b.SQL(`UPDATE operation SET state = 'RUNNING', dispatch_attempt = 1 WHERE id = $1`, accepted.Operation.ID)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE id = $1`, accepted.Operation.ID)

	b.Policy(b.project, `{"apps":{"allow":[]},"maxMembers":0,"versions":{"deny":["`+b.app.Slug+`@*"]}}`)
	b.SQL(`UPDATE entitlement SET revoked_at = now()`)
	_, err = b.service.Rollback(b.ctx, instance.RollbackInput{InstanceID: started.Instance.ID, DeadlineSeconds: 600,
		Reason: "a test", IdempotencyKey: "r"})
	require.NoError(t, err, "going back is never policy's to refuse")
}

// counted counts the statements of a database.
type counted struct{ statements atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestPolicyCostsALaunchOneStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	counter := &counted{}
	traced, err := tx.Open(t.Context(), b.DSN, tx.Options{Connections: 1, Tracer: counter})
	require.NoError(t, err)
	t.Cleanup(traced.Close)
	service := &instance.Service{DB: traced}
	launch := func(key string, allocation ids.ID) int64 {
		before := counter.statements.Load()
		_, err := service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
			in.Name, in.IdempotencyKey, in.AllocationIDs = key, key, []ids.ID{allocation}
		}))
		require.NoError(t, err)
		return counter.statements.Load() - before
	}
	launch("warm", b.allocation().ID)
	without := launch("without", b.one.ID)
	ceilings := `{"maxMembers":100,"maxGpus":100,"maxInstances":100,"maxMembersPerInstance":100}`
	b.Policy(nil, ceilings)
	b.Policy(b.project, ceilings)
	b.SQL(`UPDATE entitlement SET max_instances = 100, max_gpus = 100`)
	require.LessOrEqual(t, launch("within", b.two.ID)-without, int64(1))
}
