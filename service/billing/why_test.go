package billing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/why"
)

// line is the key of the only line of a statement.
func (b *books) line(period ids.ID) string {
	b.t.Helper()
	statement, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &period})
	require.NoError(b.t, err)
	require.Len(b.t, statement.Lines, 1)
	return statement.Lines[0].Key
}

func TestEveryCentIsExplainedDownToTheAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, manifest := b.Launchable(b.project, "apps")
	node, _ := b.Node(4)
	instance := b.Instance(b.project, manifest, lifecycle.InstanceRunning, b.Allocation(b.project, node))
	op := b.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	b.SQL(`INSERT INTO audit_entry (id, tenant_id, project_id, actor_kind, actor_id, actor_name, permission_key, action,
		allowed, reason, correlation_id, created_at)
		SELECT 'aud_1', tenant_id, project_id, requester_kind, requester_id, 'ada', 'k', 'launchInstance', true, 'training',
		correlation_id, now() FROM operation WHERE id = $1`, op.ID)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	price := b.price("capacity", "h100", hourly("2.125"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	b.use("alc_1", "mem_2", "", 3600, 1800)
	b.step(b.past)
	b.use("alc_1", "mem_3", "", 7200, 60) // not in any run yet
	b.tamper(`UPDATE usage_record SET operation_id = $1`, op.ID)
	b.tamper(`UPDATE billing_line SET line = replace(line, 'op_1', $1)`, string(op.ID))
	question := why.Question{ProjectID: b.project.ID, PeriodID: b.past, Key: b.line(b.past), Records: 1}

	e, err := why.Line(b.admin, b.DB, question)
	require.NoError(t, err)
	require.Equal(t, []string{"3.19", "3.1875", "5400", price},
		[]string{e.Amount.String(), e.Exact.String(), e.Billed.String(), string(*e.PriceID)})
	require.Len(t, e.Bookings, 2)
	require.Equal(t, 2, e.Bookings[0].Run.Number, "the newest first")
	require.Equal(t, e.Bookings[1].RunID, e.Bookings[1].Run.ID)
	sum := money.Decimal{}
	for _, booking := range e.Bookings {
		sum = sum.Add(booking.Amount)
	}
	require.Equal(t, "3.19", sum.String(), "the bookings sum to the line")
	require.Equal(t, 2, e.ShareCount)
	require.Equal(t, []string{"2.13", "1.06"}, []string{e.Shares[0].Amount.String(), e.Shares[1].Amount.String()},
		"and so do the shares")
	require.Equal(t, "2.13", b.text(`SELECT trim_scale(sum(amount))::text FROM ledger_entry WHERE account = 'ACCRUED'
		AND member_id = $1`, *e.Shares[0].MemberID))
	require.Equal(t, 2, e.RecordCount, "what came since the last run is in no amount")
	require.Len(t, e.Records, 1)
	require.Equal(t, "u2", e.Records[0].UsageID)
	found := e.Shares[0].Operation
	require.Equal(t, []any{op.ID, "INSTANCE_CREATE", ids.ID("aud_1"), "ada", "launchInstance", "training"},
		[]any{found.ID, found.Kind, *found.AuditID, *found.ActorName, *found.Action, *found.Reason})
}

func TestALineCountsTheRecordsOfItsOwnPriceAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	first := b.price("capacity", "h100", hourly("2"))
	second := string(ids.New(ids.PriceVersion))
	b.tamper(`UPDATE price_version SET valid_to = $1`, b.start.Add(2*time.Hour))
	b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ($1, $1, 'capacity', 'h100', '', 'EUR', 'PLATFORM', $2, 2, $3, '', 'test',
		'')`, second, b.start.Add(2*time.Hour), hourly("3"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.use("alc_1", "mem_1", "", 2*3600-60, 120) // over the change
	b.use("alc_1", "mem_1", "", 3*3600, 60)
	b.step(b.past)
	statement, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Len(t, statement.Lines, 2)
	for _, line := range statement.Lines {
		e, err := why.Line(b.admin, b.DB, why.Question{ProjectID: b.project.ID, PeriodID: b.past, Key: line.Key,
			Records: 10})
		require.NoError(t, err)
		want := map[string][]string{first: {"u2", "u1"}, second: {"u3", "u2"}}[string(*line.PriceID)]
		require.Equal(t, want, []string{e.Records[0].UsageID, e.Records[1].UsageID})
		require.Equal(t, 2, e.RecordCount)
	}
}

func TestOnlyWhoSeesTheProjectsBooksIsToldWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.use("alc_2", "mem_2", "ORPHAN", 0, 3600)
	b.step(b.past)
	question := why.Question{ProjectID: b.project.ID, PeriodID: b.past, Key: b.line(b.past), Records: 10}
	other := b.Tenant()
	project := b.Project(other)
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	member := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	_, err := why.Line(stranger, b.DB, question)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	theirs := question
	theirs.ProjectID = project.ID
	_, err = why.Line(stranger, b.DB, theirs)
	require.Equal(t, fault.NotFound, fault.From(err).Code, "another's period is not theirs")
	_, err = why.Line(viewer, b.DB, question)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	e, err := why.Line(member, b.DB, question)
	require.NoError(t, err)
	require.Nil(t, e.Bookings[0].Run, "a run is the whole tenant's")
	require.Equal(t, 1, e.RecordCount)
	borne := question
	borne.Key = b.text(`SELECT key FROM billing_line WHERE line LIKE '%ORPHAN%'`)
	_, err = why.Line(b.admin, b.DB, borne)
	require.Equal(t, fault.NotFound, fault.From(err).Code, "what the platform bears is no tenant's line")
	for _, many := range []int{0, 1001} {
		question.Records = many
		_, err = why.Line(b.admin, b.DB, question)
		require.Equal(t, "records", fault.From(err).Reasons[0].Path)
	}
}
