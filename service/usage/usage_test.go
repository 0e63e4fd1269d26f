package usage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/usage"
)

// bench is a project with an instance that counts jobs, and a service account that may report.
type bench struct {
	*platformtest.Kit
	service  *usage.Service
	project  *db.Project
	instance *db.Instance
	robot    context.Context
	viewer   context.Context
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Kit: platformtest.New(t)}
	b.service = &usage.Service{DB: b.DB}
	tenant := b.Tenant()
	b.project = b.Kit.Project(tenant)
	app := b.App("apps")
	document := platformtest.Document(app, "1.0.0", b.Adapter("http://127.0.0.1:1", nil),
		b.Artifact(lifecycle.StageActive))
	document["usageDimensions"] = []map[string]any{{"name": "jobs", "unit": "job"},
		{"name": "pods", "unit": "gpu-second", "kind": "showback"}}
	b.instance = b.Instance(b.project, b.Manifest(lifecycle.StageActive, document), lifecycle.InstanceRunning)
	b.SQL(`UPDATE instance SET created_at = '2026-01-01T00:00:00Z'`)
	_, credential := b.ServiceAccount(b.project, authz.UsageReport)
	b.robot = b.With(credential)
	b.viewer = b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	return b
}

// noon is when the records begin.
var noon = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// jobs are so many records of an hour each.
func (b *bench) jobs(count int) usage.ReportInput {
	in := usage.ReportInput{InstanceID: b.instance.ID}
	for n := range count {
		at := noon.Add(time.Duration(n) * time.Hour)
		in.Records = append(in.Records, &usage.ReportRecord{ID: fmt.Sprintf("j%d", n), Dimension: "jobs",
			Quantity: "1.5", From: at, To: at.Add(time.Hour)})
	}
	return in
}

func TestAReportIsRecordedOnceAndRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, err := b.service.Report(b.robot, b.jobs(3))
	require.NoError(t, err)
	require.Equal(t, &usage.Report{Recorded: 3}, first)
	again, err := b.service.Report(b.robot, b.jobs(4))
	require.NoError(t, err)
	require.Equal(t, &usage.Report{Recorded: 1, Known: 3}, again)

	filter := usage.Filter{ProjectID: b.project.ID}
	read, err := b.service.Records(b.viewer, filter, page.Args{First: 3})
	require.NoError(t, err)
	require.Len(t, read.Rows, 3)
	require.Equal(t, "j3", read.Rows[0].UsageID)
	rest, err := b.service.Records(b.viewer, filter, page.Args{First: 3, After: read.Cursors[2]})
	require.NoError(t, err)
	require.Len(t, rest.Rows, 1)
	require.Equal(t, "j0", rest.Rows[0].UsageID)

	sums, err := b.service.Sums(b.viewer, filter, false)
	require.NoError(t, err)
	require.Len(t, sums, 1)
	require.Equal(t, "6", sums[0].Quantity)
	require.Equal(t, 4, sums[0].Records)
	hours, err := b.service.Sums(b.viewer, filter, true)
	require.NoError(t, err)
	require.Len(t, hours, 4)
	require.Equal(t, noon.Add(3*time.Hour), hours[0].Hour.UTC())
	until := noon.Add(time.Hour)
	some, err := b.service.Sums(b.viewer, usage.Filter{ProjectID: b.project.ID, InstanceID: &b.instance.ID, To: &until},
		false)
	require.NoError(t, err)
	require.Equal(t, "1.5", some[0].Quantity)
}

func TestAnIDOfOtherContentGoesIntoQuarantineAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.service.Report(b.robot, b.jobs(1))
	require.NoError(t, err)
	in := b.jobs(2)
	in.Records[0].Quantity = "99"
	for range 2 {
		taken, err := b.service.Report(b.robot, in)
		require.NoError(t, err)
		require.Equal(t, 1, taken.Quarantined)
	}
	sums, err := b.service.Sums(b.viewer, usage.Filter{ProjectID: b.project.ID}, false)
	require.NoError(t, err)
	require.Equal(t, "3", sums[0].Quantity, "what came first stays, and the other is recorded")
	held, err := b.service.Quarantine(b.viewer, &b.project.ID, &b.instance.ID, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, held.Rows, 1)
	require.Equal(t, string(fault.UsageIDReused), held.Rows[0].Code)
	require.Contains(t, string(held.Rows[0].Record), `"99"`)
	other := ids.New(ids.Instance)
	none, err := b.service.Quarantine(b.viewer, &b.project.ID, &other, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, none.Rows, "of another instance there is none")
	all, err := b.service.Quarantine(b.As(b.Operator()), nil, nil, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, all.Rows, 1)
	_, err = b.service.Quarantine(b.viewer, nil, nil, page.Args{First: 10})
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
}

// What is wrong with a report is refused by code and field, and nothing of it is recorded.
func TestABadReportIsRefusedWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	member := ids.New(ids.Member)
	for name, one := range map[string]struct {
		change func(*usage.ReportRecord)
		code   fault.Code
		field  string
	}{
		"unknown dimension": {func(r *usage.ReportRecord) { r.Dimension = "gpus" }, fault.DimensionUnknown,
			"dimension"},
		"negative":   {func(r *usage.ReportRecord) { r.Quantity = "-1" }, fault.UsageQuantity, "quantity"},
		"no decimal": {func(r *usage.ReportRecord) { r.Quantity = "1e3" }, fault.UsageQuantity, "quantity"},
		"too exact": {func(r *usage.ReportRecord) { r.Quantity = "0.0000000000001" }, fault.UsageQuantity,
			"quantity"},
		"future": {func(r *usage.ReportRecord) { r.To = time.Now().Add(time.Hour) }, fault.UsageInFuture, "to"},
		"before the instance": {func(r *usage.ReportRecord) { r.From = r.From.AddDate(-1, 0, 0) },
			fault.UsageBeforeInstance, "from"},
		"backwards":      {func(r *usage.ReportRecord) { r.To = r.From.Add(-time.Second) }, fault.BadValue, "to"},
		"no id":          {func(r *usage.ReportRecord) { r.ID = "" }, fault.Required, "id"},
		"foreign member": {func(r *usage.ReportRecord) { r.MemberID = &member }, fault.UnknownValue, "memberId"},
	} {
		in := b.jobs(2)
		one.change(in.Records[1])
		_, err := b.service.Report(b.robot, in)
		require.True(t, fault.Is(err, fault.InvalidArgument), "%s: %v", name, err)
		reasons := fault.From(err).Reasons
		require.Len(t, reasons, 1, name)
		require.Equal(t, one.code, reasons[0].Code, name)
		require.Equal(t, "input.records.1."+one.field, reasons[0].Path, name)
	}
	_, err := b.service.Report(b.robot, usage.ReportInput{InstanceID: b.instance.ID})
	require.True(t, fault.Is(err, fault.InvalidArgument))
	_, err = b.service.Report(b.viewer, b.jobs(1))
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	other := b.Kit.Project(b.Tenant())
	_, credential := b.ServiceAccount(other, authz.UsageReport)
	_, err = b.service.Report(b.With(credential), b.jobs(1))
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.Zero(t, b.Count("usage_record", "true")+b.Count("usage_quarantine", "true"))
}

// A dimension that a later manifest does not declare any more takes what was used before, and nothing after.
func TestARetiredDimensionTakesWhatWasUsedBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	app := b.App("apps")
	document := platformtest.Document(app, "2.0.0", b.Adapter("http://127.0.0.1:2", nil),
		b.Artifact(lifecycle.StageActive))
	document["usageDimensions"] = []map[string]any{{"name": "tasks", "unit": "task"}}
	later := b.Manifest(lifecycle.StageActive, document)
	b.SQL(`DELETE FROM instance_generation`)
	for n, manifest := range []ids.ID{b.instance.ManifestID, later.ID} {
		b.SQL(`INSERT INTO instance_generation (id, tenant_id, project_id, instance_id, number, manifest_id,
			app_version,
			created_at)
			VALUES ($1, $2, $3, $4, $5, $6, '1', $7)`, ids.New(ids.Generation), b.project.TenantID, b.project.ID,
			b.instance.ID,
			n+1, manifest,
			noon.Add(time.Duration(n)*2*time.Hour))
	}
	taken, err := b.service.Report(b.robot, b.jobs(2))
	require.NoError(t, err)
	require.Equal(t, 2, taken.Recorded)
	_, err = b.service.Report(b.robot, b.jobs(3))
	require.Equal(t, fault.DimensionRetired, fault.From(err).Reasons[0].Code)
	in := b.jobs(1)
	in.Records[0].Dimension = "tasks"
	_, err = b.service.Report(b.robot, in)
	require.Equal(t, fault.DimensionUnknown, fault.From(err).Reasons[0].Code, "it was not declared yet")
	require.Equal(t, []int{2, 0}, []int{b.Count("usage_record", ""), b.Count("usage_quarantine", "")},
		"what is refused is not recorded")
}

func TestHowFarUsageIsRecordedIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(2)
	rented := b.Allocation(b.project, node)
	b.SQL(`UPDATE compute_node SET boot_id = 'boot', last_seen_at = now()`)
	sources, err := b.service.Sources(b.viewer, b.project.ID, nil)
	require.NoError(t, err)
	require.Len(t, sources, 1)
	require.Equal(t, rented.ID, sources[0].Source)
	require.Nil(t, sources[0].RecordedTo)
	require.NotNil(t, sources[0].ProvedTo)
	for source, found := range map[ids.ID]int{rented.ID: 1, b.instance.ID: 0} {
		sources, err = b.service.Sources(b.viewer, b.project.ID, &source)
		require.NoError(t, err)
		require.Len(t, sources, found)
	}
	_, err = b.service.Sources(b.As(b.User(b.Tenant())), b.project.ID, nil)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}
