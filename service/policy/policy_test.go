package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/policy"
)

// bundle is a project with an admin, its tenant's admin and an operator.
type bundle struct {
	*platformtest.Kit
	t                      *testing.T
	tenant                 *db.Tenant
	project                *db.Project
	operator, admin, owner context.Context
	service                *policy.Service
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	b.operator = b.As(b.Operator())
	b.admin = b.As(b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant)))
	b.owner = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	b.service = &policy.Service{DB: b.DB}
	return b
}

func (b *bundle) ofPlatform(document string) policy.SetInput {
	return policy.SetInput{Document: json.RawMessage(document), Reason: "a test"}
}

func (b *bundle) ofTenant(document string) policy.SetInput {
	in := b.ofPlatform(document)
	in.TenantID = &b.tenant.ID
	return in
}

func (b *bundle) ofProject(document string) policy.SetInput {
	in := b.ofPlatform(document)
	in.ProjectID = &b.project.ID
	return in
}

func (b *bundle) set(ctx context.Context, in policy.SetInput) *db.PolicyOverlay {
	b.t.Helper()
	row, err := b.service.SetPolicy(ctx, in)
	require.NoError(b.t, err)
	return row
}

// written is how many rows there are of what a verb writes.
func (b *bundle) written() string {
	b.t.Helper()
	return fmt.Sprint(b.Count("policy_overlay", ""), b.Count("policy_overlay", "superseded_at IS NOT NULL"),
		b.Count("audit_entry", "allowed"))
}

func refused(t *testing.T, err error, code fault.Code, paths ...string) {
	t.Helper()
	require.True(t, fault.Is(err, code), "want %s: %v", code, err)
	var named []string
	for _, reason := range fault.From(err).Reasons {
		named = append(named, reason.Path)
	}
	if len(paths) > 0 {
		require.Equal(t, paths, named)
	}
}

func TestAnOverlayTakesThePlaceOfTheOneThatHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.set(b.admin, b.ofProject(`{"maxGpus": 8}`))
	require.Equal(t, []any{lifecycle.PolicyProject, 1, "a test", b.tenant.ID, b.project.ID},
		[]any{first.Scope, first.Revision, first.Reason, *first.TenantID, *first.ProjectID})
	in := b.ofProject(`{"maxGpus": 4}`)
	in.ExpectedRevision = 1
	second := b.set(b.operator, in)
	require.Equal(t, 2, second.Revision)
	found, err := b.service.Overlays(b.owner, nil, &b.project.ID, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, []any{second.ID, true}, []any{found.Rows[0].ID, found.HasNext})
	require.JSONEq(t, `{"maxGpus":4}`, string(found.Rows[0].Document))
	found, err = b.service.Overlays(b.owner, nil, &b.project.ID, page.Args{First: 5, After: found.Cursors[0]})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1)
	require.Equal(t, first.ID, found.Rows[0].ID)
	require.NotNil(t, found.Rows[0].SupersededAt)
	one, err := b.service.Overlay(b.owner, first.ID)
	require.NoError(t, err)
	require.Equal(t, 1, one.Revision)
	require.Equal(t, 1, b.Count("audit_entry", `action = 'setPolicy' AND allowed AND permission_key = 'policy.manage' AND object_id = $1 AND reason = 'a test'
		AND before -> 'document' = '{"maxGpus":8}' AND after -> 'document' = '{"maxGpus":4}'`, second.ID))
}

func TestAnOverlayIsRefusedWithCodeAndPathAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.Tenant()
	theirs := b.Project(other)
	b.set(b.operator,
		b.ofPlatform(
			`{"regions":{"allow":["a1","b1"]},"skus":{"deny":["slow"]},"final":{"apps":["gone"]},"maxGpus":8,"maxHourlyCost":{"amountMicros":5,"currency":"EUR"}}`))
	b.set(b.admin, b.ofTenant(`{"regions":{"allow":["a1"]}}`))
	before := b.written()
	change := func(in policy.SetInput, do func(*policy.SetInput)) policy.SetInput { do(&in); return in }
	for name, c := range map[string]struct {
		ctx   context.Context
		in    policy.SetInput
		code  fault.Code
		paths []string
	}{
		"malformed": {b.admin, b.ofProject(`{"regions":{"allow":["a 1"]},"x":1}`), fault.InvalidArgument,
			[]string{"input.document.regions.allow.0", "input.document.x"}},
		"final below": {b.admin, b.ofProject(`{"final":{}}`), fault.InvalidArgument, []string{"input.document.final"}},
		"no reason": {b.admin, change(b.ofProject(`{}`), func(in *policy.SetInput) { in.Reason = "" }),
			fault.InvalidArgument, []string{"input.reason"}},
		"negative revision": {b.admin, change(b.ofProject(`{}`), func(in *policy.SetInput) {
			in.ExpectedRevision = -1
		}),
			fault.InvalidArgument, []string{"input.expectedRevision"}},
		"stale": {b.admin, b.ofTenant(`{}`), fault.Conflict, []string{"input.expectedRevision"}},
		"ahead": {b.admin, change(b.ofProject(`{}`), func(in *policy.SetInput) { in.ExpectedRevision = 3 }),
			fault.Conflict, []string{"input.expectedRevision"}},
		"widens": {b.admin, b.ofProject(`{"regions":{"allow":["a1","b1"]},"skus":{"allow":["slow"]},"apps":{"allow":["gone"]},"maxGpus":9,"maxHourlyCost":{"amountMicros":6,"currency":"EUR"},
			"operatingModes":{"allow":["PLATFORM_MANAGED"]}}`), fault.PolicyWidens,
			[]string{"input.document.regions.allow.1", "input.document.skus.allow.0", "input.document.apps.allow.0",
				"input.document.operatingModes.allow.0", "input.document.maxGpus",
				"input.document.maxHourlyCost.amountMicros"}},
		"another tenant's project": {b.admin, change(b.ofProject(`{}`), func(in *policy.SetInput) {
			in.ProjectID = &theirs.ID
		}), fault.NotFound, nil},
		"another tenant": {b.admin, change(b.ofTenant(`{}`), func(in *policy.SetInput) { in.TenantID = &other.ID }),
			fault.NotFound, nil},
		"not its tenant": {b.operator, change(b.ofProject(`{}`), func(in *policy.SetInput) {
			in.TenantID = &other.ID
		}), fault.InvalidArgument, []string{"input.tenantId"}},
		"platform by a tenant":   {b.admin, b.ofPlatform(`{}`), fault.Forbidden, nil},
		"by the project's admin": {b.owner, b.ofProject(`{}`), fault.Forbidden, nil},
	} {
		_, err := b.service.SetPolicy(c.ctx, c.in)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		refused(t, err, c.code, c.paths...)
		if c.code == fault.InvalidArgument && name != "not its tenant" || c.code == fault.Conflict ||
			c.code == fault.PolicyWidens {
			found, err := b.service.Preview(c.ctx, c.in)
			require.NoError(t, err, name)
			var paths []string
			for _, problem := range found.Problems {
				paths = append(paths, problem.Path)
			}
			require.Equal(t, c.paths, paths, "%s: a preview says so before", name)
		} else {
			_, err := b.service.Preview(c.ctx, c.in)
			refused(t, err, c.code, c.paths...)
		}
	}
	require.Equal(t, before, b.written())
	denied := 0
	for _, entry := range b.Audit() {
		if !entry.Allowed && entry.Action == "setPolicy" && entry.PermissionKey == "policy.manage" {
			denied += entry.Repeats
		}
	}
	require.Equal(t, 5, denied, "every attempt for want of a key or sight is recorded, and the one that would widen")
}

func TestOfManyWritersOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	errs := make([]error, 6)
	var running sync.WaitGroup
	for i := range errs {
		running.Go(func() {
			_, errs[i] = b.service.SetPolicy(b.operator, b.ofPlatform(fmt.Sprintf(`{"maxGpus":%d}`, i)))
		})
	}
	running.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		refused(t, err, fault.Conflict, "input.expectedRevision")
	}
	require.Equal(t, 1, won)
	require.Equal(t, 1, b.Count("policy_overlay", ""))
}

func TestWhatIsLeftTellsTheOriginOfEveryRule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.service.Effective(b.owner, b.project.ID)
	require.NoError(t, err)
	require.Len(t, before.Rules, 2, "the platform's defaults")
	platform := b.set(b.operator, b.ofPlatform(`{"regions":{"allow":["a1","b1"]}}`))
	tenant := b.set(b.admin, b.ofTenant(`{"regions":{"deny":["b1"]}}`))
	project := b.set(b.admin, b.ofProject(`{"maxMembers":3}`))
	b.set(b.operator, func() policy.SetInput { // another tenant's is nothing of this project's
		other := b.Tenant()
		in := b.ofTenant(`{"maxMembers":1}`)
		in.TenantID = &other.ID
		return in
	}())
	after, err := b.service.Effective(b.owner, b.project.ID)
	require.NoError(t, err)
	require.NotEqual(t, before.Hash, after.Hash)
	var shown []string
	for _, rule := range after.Rules {
		if rule.OverlayID != nil {
			shown = append(shown, fmt.Sprint(rule.Dimension, " ", rule.Effect, " ", rule.Origin, " ", *rule.OverlayID))
		}
	}
	require.Equal(t, []string{"regions ALLOW PLATFORM " + string(platform.ID),
		"regions DENY TENANT " + string(tenant.ID), "maxMembers CEILING PROJECT " + string(project.ID)}, shown)
	stranger := b.As(b.User(b.Tenant()))
	_, err = b.service.Effective(stranger, b.project.ID)
	refused(t, err, fault.NotFound)
	for _, ofTenant := range []bool{true, false} {
		id := &b.project.ID
		if ofTenant {
			_, err = b.service.Overlays(stranger, &b.tenant.ID, nil, page.Args{First: 5})
		} else {
			_, err = b.service.Overlays(stranger, nil, id, page.Args{First: 5})
		}
		refused(t, err, fault.NotFound)
	}
	_, err = b.service.Overlay(stranger, project.ID)
	refused(t, err, fault.NotFound)
	_, err = b.service.Overlays(b.owner, nil, nil, page.Args{First: 5})
	require.NoError(t, err, "the platform's is seen by whoever it binds")
}

func TestAPreviewNamesWhatComesToBeDenied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app, stored := b.Launchable(b.project, "apps")
	node, _ := b.Node(4)
	used := b.Allocation(b.project, node)
	b.SQL(`UPDATE allocation SET region = 'a1', sku = 'h100'`)
	made := b.Instance(b.project, stored, lifecycle.InstanceRunning, used, used)
	own := b.set(b.admin, b.ofProject(`{"regions":{"allow":["a1"]}}`))
	before := b.written()
	sibling := b.Project(b.Tenant())
	theirs, _ := b.Launchable(sibling, "apps")

	say := func(ctx context.Context, in policy.SetInput) (*policy.Preview, []string) {
		found, err := b.service.Preview(ctx, in)
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		var lines []string
		for _, one := range found.NewlyDenied {
			var codes []string
			for _, reason := range one.Reasons {
				codes = append(codes, string(reason.Code))
			}
			id := "-"
			if one.ObjectID != nil {
				id = string(*one.ObjectID)
			}
			lines = append(lines, fmt.Sprint(id, " ", strings.Join(codes, ",")))
		}
		require.Len(t, lines, found.NewlyDeniedTotal)
		return found, lines
	}
	_, lines := say(b.admin,
		b.ofTenant(`{"regions":{"deny":["a1"]},"maxGpus":1,"maxMembersPerInstance":1,"versions":{"deny":["`+app.Slug+
			`@1"]}}`))
	require.ElementsMatch(t, []string{string(made.ID) + " VERSION_DENIED,MEMBERS_CEILING",
		string(used.ID) + " REGION_DENIED", "- GPUS_CEILING",
		string(*idOf(own)) + " REGION_DENIED"}, lines,
		"an instance, an allocation, what the project has, and the project's own overlay, which loses")
	_, lines = say(b.operator, b.ofPlatform(`{"apps":{"deny":["`+theirs.Slug+`"]}}`))
	require.Equal(t, []string{"- APP_DENIED"}, lines, "an entitlement, in another tenant")
	_, lines = say(b.admin,
		b.ofTenant(
			`{"artifactSources":{"allow":["elsewhere.example"]},"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`))
	require.Equal(t, []string{string(made.ID) + " SOURCE_DENIED", "- SPENDING_CEILING"}, lines)
	_, lines = say(b.admin, b.ofTenant(`{"maxGpus":100}`))
	require.Empty(t, lines)
	require.Equal(t, before, b.written(), "a preview writes nothing")

	b.set(b.admin, b.ofTenant(`{"skus":{"deny":["h100"]}}`))
	lift := b.ofTenant(`{}`)
	lift.ExpectedRevision = 1
	found, lines := say(b.admin, lift)
	require.Empty(t, lines)
	require.Equal(t, 1, found.NewlyAllowedTotal)
}

func idOf(row *db.PolicyOverlay) *ids.ID { return &row.ID }
