package memberlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/service/memberlog"
)

// bench is a member on a node whose agent is the test.
type bench struct {
	*platformtest.Kit
	t       *testing.T
	service *memberlog.Service
	project *db.Project
	member  *db.Member
	node    *db.ComputeNode
	admin   context.Context
	viewer  context.Context

	mu      sync.Mutex
	lines   []nodelogs.Line
	end     error
	breaks  int // connections that break off after two lines
	queries []nodelogs.Query
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	b := &bench{Kit: kit, t: t}
	b.service = &memberlog.Service{DB: kit.DB, Open: b.open}
	tenant := kit.Tenant()
	b.project = kit.Project(tenant)
	_, stored := kit.Launchable(b.project, "apps")
	b.node, _ = kit.Node(4)
	instance := kit.Instance(b.project, stored, lifecycle.InstanceRunning, kit.Allocation(b.project, b.node))
	members, err := b.Ent.Member.Query().All(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(members, func(m *db.Member) bool { return m.InstanceID == instance.ID })
	b.member = members[at]
	b.admin = kit.As(kit.User(tenant, platformtest.In("project_admin", b.project)))
	b.viewer = kit.As(kit.User(tenant, platformtest.In("project_viewer", b.project)))
	return b
}

// open is the connection to the node's agent.
func (b *bench) open(_ context.Context, _, node, member ids.ID) (io.ReadWriteCloser, error) {
	if node != b.node.ID {
		return nil, fmt.Errorf("another node: %s", node)
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_ = nodelogs.Serve(context.Background(), there, string(member), b)
	}()
	return here, nil
}

// Processes and Read make the bench what an agent reads from.
func (b *bench) Processes(string) ([]string, error) { return []string{"a", "b"}, nil }

func (b *bench) Read(ctx context.Context, query nodelogs.Query, each func(nodelogs.Line) error) error {
	b.mu.Lock()
	b.queries = append(b.queries, query)
	breaks := b.breaks > 0
	b.breaks--
	b.mu.Unlock()
	sent := 0
	for _, line := range b.lines {
		if line.Number <= query.After[line.Process] {
			continue
		}
		if breaks && sent == 2 {
			panicClosed(each)
			return io.ErrClosedPipe
		}
		if err := each(line); err != nil {
			return err
		}
		if sent++; sent == query.Limit {
			return nil
		}
	}
	return b.end
}

// panicClosed breaks the stream off: what it sends is not a line.
func panicClosed(each func(nodelogs.Line) error) { _ = each(nodelogs.Line{Process: "broken off"}) }

func line(process string, number int64, text string) nodelogs.Line {
	return nodelogs.Line{Process: process, Number: number, Time: time.Unix(1_700_000_000+number, 0).UTC(),
		Stream: "stdout",
		Text:   text}
}

func texts(lines []*memberlog.Line) (list []string) {
	for _, one := range lines {
		if one.Gap != nil {
			list = append(list, one.Process+" gap")
			continue
		}
		list = append(list, one.Process+" "+one.Text)
	}
	return list
}

func (b *bench) input() memberlog.Input { return memberlog.Input{MemberID: b.member.ID} }

func (b *bench) audited(action string) (list []string) {
	b.t.Helper()
	for _, entry := range b.Audit() {
		if entry.Action == action && entry.Allowed {
			list = append(list, fmt.Sprintf("%s %t %s", entry.PermissionKey, entry.Allowed, entry.After))
		}
	}
	return list
}

func TestPageReadsOnAfterItsCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lines = []nodelogs.Line{{Process: "b", Number: 4, Mark: true}, line("a", 1, "one"),
		{Process: "a", Number: 5, Gap: &nodelogs.Gap{From: 2, To: 5}}, line("b", 5, "two")}
	page, err := b.service.Page(b.admin, b.input())
	require.NoError(t, err)
	require.Equal(t, []string{"a one", "a gap", "b two"}, texts(page.Lines))
	require.Equal(t, 4, *page.Lines[1].Gap.Lines)
	require.Equal(t, lifecycle.LogOfNode, page.Source)
	require.Equal(t, []string{"a", "b"}, page.Processes)
	require.False(t, page.More)
	next := b.input()
	next.After = page.Lines[0].Cursor
	page, err = b.service.Page(b.admin, next)
	require.NoError(t, err)
	require.Equal(t, []string{"a gap", "b two"}, texts(page.Lines))
	require.Equal(t, map[string]int64{"a": 1, "b": 4}, b.queries[1].After, "what the tail left out is not read")
	require.Equal(t, []int{200, 0}, []int{b.queries[0].Tail, b.queries[1].Tail})
	require.Equal(t, []string{`apps.member.logs true {"follow": false, "process": ""}`,
		`apps.member.logs true {"follow": false, "process": ""}`}, b.audited("readMemberLogs"))
}

func TestPageIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 100 {
		b.lines = append(b.lines, line("a", int64(i+1), strings.Repeat("x", 30<<10)))
	}
	in := b.input()
	in.Tail = new(0)
	page, err := b.service.Page(b.admin, in)
	require.NoError(t, err)
	require.True(t, page.More)
	require.Less(t, len(page.Lines), 70)
	in.After = page.Cursor
	rest, err := b.service.Page(b.admin, in)
	require.NoError(t, err)
	require.Len(t, append(page.Lines, rest.Lines...), 100)
}

func TestWhoMayNotReadLearnsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.lines = []nodelogs.Line{line("a", 1, "one")}
	tenant := b.Tenant()
	stranger := b.As(b.User(tenant, platformtest.In("project_admin", b.Project(tenant))))
	for _, c := range []struct {
		who  context.Context
		code fault.Code
	}{{b.viewer, fault.Forbidden}, {stranger, fault.NotFound}} {
		_, err := b.service.Page(c.who, b.input())
		require.True(t, fault.Is(err, c.code), "%v", err)
		_, err = b.service.Follow(c.who, b.input())
		require.True(t, fault.Is(err, c.code), "%v", err)
		require.True(t, fault.Is(b.service.Check(c.who, b.member.ID), c.code))
	}
	require.NoError(t, b.service.Check(b.admin, b.member.ID))
	b.Policy(b.project, `{"access": {"deny": ["LOGS"]}}`)
	_, err := b.service.Page(b.admin, b.input())
	require.True(t, fault.Is(err, fault.PolicyDenied), "%v", err)
	require.Empty(t, b.queries, "no node was asked")
	require.Empty(t, b.audited("readMemberLogs"), "nothing allowed was recorded")
}

func TestBadInputNamesTheArgument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, c := range map[string]struct {
		change func(*memberlog.Input)
		code   fault.Code
	}{
		"process": {func(in *memberlog.Input) { in.Process = "../a" }, fault.InvalidArgument},
		"tail":    {func(in *memberlog.Input) { in.Tail = new(1001) }, fault.InvalidArgument},
		"after":   {func(in *memberlog.Input) { in.After = "nonsense" }, fault.CursorInvalid},
	} {
		in := b.input()
		c.change(&in)
		_, err := b.service.Page(b.admin, in)
		require.True(t, fault.Is(err, c.code), "%s: %v", path, err)
		require.Contains(t, fmt.Sprintf("%+v", fault.From(err)), path)
	}
	other := b.input()
	page, err := b.service.Page(b.admin, other)
	require.NoError(t, err)
	other.MemberID, other.After = ids.New(ids.Member), page.Cursor
	_, err = b.service.Page(b.admin, other)
	require.True(t, fault.Is(err, fault.CursorInvalid), "of another member: %v", err)
}

func TestWhatTheNodeAnswersIsTranslated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for code, want := range map[nodelogs.Code]fault.Code{
		nodelogs.ProcessUnknown: fault.InvalidArgument, nodelogs.CursorAhead: fault.CursorInvalid,
		nodelogs.MemberUnknown: fault.FailedPrecondition, nodelogs.Failed: fault.Internal,
	} {
		b.end = &nodelogs.Error{Code: code, Message: "no"}
		_, err := b.service.Page(b.admin, b.input())
		require.True(t, fault.Is(err, want), "%s: %v", code, err)
	}
	b.lines = []nodelogs.Line{line("../a", 1, "x")}
	_, err := b.service.Page(b.admin, b.input())
	require.True(t, fault.Is(err, fault.NodeUnreachable), "%v", err)
	b.service.Open = nil
	_, err = b.service.Page(b.admin, b.input())
	require.True(t, fault.Is(err, fault.NodeUnreachable), "%v", err)
}

func TestFollowerGoesOnWhereTheConnectionBroke(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.breaks = 2
	for i := range 6 {
		b.lines = append(b.lines, line("a", int64(i+1), fmt.Sprint(i+1)))
	}
	following, err := b.service.Follow(b.admin, b.input())
	require.NoError(t, err)
	var got []*memberlog.Line
	require.NoError(t, following.Run(t.Context(), func(one *memberlog.Line) error {
		got = append(got, one)
		return nil
	}))
	require.Equal(t, []string{"a 1", "a 2", "a 3", "a 4", "a 5", "a 6"}, texts(got), "each line once")
	require.Len(t, b.queries, 3)
	require.Equal(t, []string{`apps.member.logs true {"follow": true, "process": ""}`}, b.audited("readMemberLogs"))
}

func TestLastLinesOfAMemberAreItsEvidence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.service.Open = nil
	kept := []nodelogs.Last{
		{Process: "a", Earlier: true, Lines: []nodelogs.Line{line("a", 8, "eight"), line("a", 10, "ten \x1b[2J")}},
		{Process: "b", Lines: []nodelogs.Line{line("b", 9, "nine")}},
	}
	result, err := json.Marshal(map[string]any{"residue": map[string]any{}, "logs": kept})
	require.NoError(t, err)
	b.Ent.NodeTask.Create().SetID(ids.New(ids.NodeTask)).SetTenantID(b.member.TenantID).
		SetProjectID(b.member.ProjectID).
		SetInstanceID(b.member.InstanceID).SetMemberID(b.member.ID).SetNodeID(b.node.ID).
		SetKind(lifecycle.TaskTeardown).
		SetSpecDigest([]byte("x")).SetState(lifecycle.TaskSucceeded).SetTimeoutSeconds(60).SetResult(result).
		SetIdempotencyKey("k").SetCreatedAt(time.Now()).SaveX(t.Context())
	page, err := b.service.Page(b.admin, b.input())
	require.NoError(t, err)
	require.Equal(t, lifecycle.LogOfEvidence, page.Source)
	require.Equal(t, []string{"a eight", "b nine", "a ten "}, texts(page.Lines))
	in := b.input()
	in.Tail = new(0)
	page, err = b.service.Page(b.admin, in)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a gap", "a eight", "b gap", "b nine", "a ten "}, texts(page.Lines))
	in = b.input()
	in.After = page.Cursor
	page, err = b.service.Page(b.admin, in)
	require.NoError(t, err)
	require.Empty(t, page.Lines)
	in = b.input()
	in.Process = "c"
	_, err = b.service.Page(b.admin, in)
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	following, err := b.service.Follow(b.admin, b.input())
	require.NoError(t, err)
	count := 0
	require.NoError(t, following.Run(t.Context(), func(*memberlog.Line) error { count++; return nil }))
	require.Equal(t, 3, count, "and it ends")
}
