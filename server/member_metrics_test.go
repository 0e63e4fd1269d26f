package server

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

// measured is what a node has measured of any member: a sample of half a core 20 seconds ago, and one of a whole core
// now.
type measured struct{ now int64 }

// Series is an agent's.
func (m measured) Series(query nodemetrics.Query) ([]nodemetrics.Point, error) {
	point := func(at int64, cpu float64) nodemetrics.Point {
		values := nodemetrics.Unknown()
		values[nodemetrics.CPU] = cpu
		return nodemetrics.Point{At: at, Samples: 1, Average: values.Pointers(), Max: values.Pointers()}
	}
	if query.Range > nodemetrics.FineSpan {
		return nil, &nodemetrics.Error{Code: nodemetrics.MemberUnknown}
	}
	return []nodemetrics.Point{point(m.now-20, 0.5), point(m.now, 1)}, nil
}

// scraped requests a project's numbers as a scraper does.
func (r *reachable) scraped(project, credential string) (status int, body string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet,
		r.far.url+"/v1/projects/"+project+"/metrics", nil)
	require.NoError(r.t, err)
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response.StatusCode, string(raw)
}

// What a node's heartbeat brings is read at once by everybody who may read members, and by a scraper; the series comes
// from the node by way of another process, with its gap.
func TestWhatMembersUseIsRead(t *testing.T) {
	t.Parallel()
	r := newReachable(t)
	ctx := t.Context()
	project := string(r.project.ID)
	viewer := r.Session(r.User(r.tenant, platformtest.In(authz.ProjectViewer, r.project)))
	c, err := client.New(r.far.url, client.Options{Token: viewer})
	require.NoError(t, err)
	before, err := gql.GetMemberUsage(ctx, c, project, string(r.instance.ID))
	require.NoError(t, err)
	require.NotEmpty(t, before.MemberUsage)
	own := before.MemberUsage[0]
	require.True(t, own.Stale)
	require.Nil(t, own.At)

	agent, err := client.New(r.far.url, client.Options{Token: r.credential})
	require.NoError(t, err)
	beat := func(input ...gql.MemberUsageInput) error {
		_, err := gql.NodeHeartbeat(ctx, agent, gql.NodeHeartbeatInput{AgentVersion: "1", BootId: "b",
			MemberUsage: input})
		return err
	}
	elsewhere, _ := r.Node(1)
	apart := r.launch(r.project, elsewhere) // a node says nothing about a member that is not on it
	foreign, err := gql.GetMemberUsage(ctx, c, project, string(apart.ID))
	require.NoError(t, err)
	require.NoError(t, beat(
		gql.MemberUsageInput{MemberId: own.MemberId, Cpu: new(0.25), CpuSeconds: new(12.5),
			MemoryBytes: new(64.0), Gpus: 1, GpusSimulated: true},
		gql.MemberUsageInput{MemberId: foreign.MemberUsage[0].MemberId, Cpu: new(9.0)}))
	require.Equal(t, 1, r.Count("member_usage", "true"))
	now, err := gql.GetMemberUsage(ctx, c, project, string(r.instance.ID))
	require.NoError(t, err)
	require.False(t, now.MemberUsage[0].Stale)
	require.InDelta(t, 0.25, *now.MemberUsage[0].Cpu, 0)
	require.True(t, now.MemberUsage[0].GpusSimulated)
	require.Nil(t, now.MemberUsage[0].Gpu)
	require.Equal(t, client.CodeInvalidArgument,
		client.CodeOf(beat(gql.MemberUsageInput{MemberId: own.MemberId, Gpu: new(1.5)})))

	status, text := r.scraped(project, viewer)
	require.Equal(t, http.StatusOK, status, text)
	labels := `{allocation="` + *orEmpty(own.AllocationId) + `",component="` + own.ComponentKey + `",instance="` +
		own.InstanceId + `",member="` + own.MemberId + `"}`
	require.Contains(t, text, "app_platform_member_cpu_seconds_total"+labels+" 12.5\n")
	require.Contains(t, text, "app_platform_member_measured"+labels+" 1\n")
	require.NotContains(t, text, "gpu_utilization_ratio{")
	status, text = r.scraped(project, "")
	require.Equal(t, http.StatusUnauthorized, status, text)
	status, text = r.scraped(project, r.Session(r.User(r.Tenant())))
	require.Equal(t, http.StatusNotFound, status, text)
	require.NotContains(t, text, own.MemberId)

	_, err = gql.GetMemberMetrics(ctx, c, own.MemberId, gql.MetricsRangeHour, nil)
	require.Equal(t, client.CodeNodeUnreachable, client.CodeOf(err), "%v", err)
	at := measured{nodemetrics.End(time.Now().Unix(), nodemetrics.FineStep)}
	r.metrics = at
	agentLife, stop := context.WithCancel(ctx)
	defer stop()
	r.agent(agentLife, r.near)
	series, err := gql.GetMemberMetrics(ctx, c, own.MemberId, gql.MetricsRangeQuarterHour, nil)
	require.NoError(t, err)
	points := series.Member.Metrics.Points
	require.Len(t, points, 90)
	last := points[len(points)-3:]
	if last[2].Samples == 0 { // a step of the clock has passed
		last = points[len(points)-4 : len(points)-1]
	}
	require.Equal(t, []int{1, 0, 1}, []int{last[0].Samples, last[1].Samples, last[2].Samples},
		"a gap is a point without samples")
	require.Nil(t, last[1].Cpu)
	require.InDelta(t, 0.5, last[0].Cpu.Average, 0)
	stranger, err := client.New(r.far.url, client.Options{Token: r.Session(r.User(r.Tenant()))})
	require.NoError(t, err)
	_, err = gql.GetMemberMetrics(ctx, stranger, own.MemberId, gql.MetricsRangeHour, nil)
	require.Equal(t, client.CodeNotFound, client.CodeOf(err))
	_, robot := r.ServiceAccount(r.project, authz.AllocationRead) // may read no members
	status, text = r.scraped(project, robot)
	require.Equal(t, http.StatusForbidden, status, text)
	require.NotContains(t, text, own.MemberId)
	coarser, err := gql.GetMemberMetrics(ctx, c, own.MemberId, gql.MetricsRangeHour, new(1800))
	require.NoError(t, err)
	require.Len(t, coarser.Member.Metrics.Points, 2)
	_, err = gql.GetMemberMetrics(ctx, c, own.MemberId, gql.MetricsRangeHour, new(15))
	require.Equal(t, client.CodeInvalidArgument, client.CodeOf(err))
	_, err = gql.GetMemberMetrics(ctx, c, own.MemberId, gql.MetricsRangeWeek, nil)
	require.Equal(t, client.CodeFailedPrecondition, client.CodeOf(err))
}

func orEmpty(text *string) *string {
	if text == nil {
		return new("")
	}
	return text
}
