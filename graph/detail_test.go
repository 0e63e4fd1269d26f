package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/feed"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// wholeBench is the whole public API, sockets and live subscriptions included, with a project in
// which an instance of three members runs.
type wholeBench struct {
	*bench
	project *db.Project
	made    *db.Instance
	last    *db.Operation
	viewer  *db.User
}

func newWholeBench(t *testing.T) *wholeBench {
	t.Helper()
	b := &wholeBench{bench: &bench{Kit: platformtest.New(t), t: t}}
	kit := b.Kit
	sentinel := live.NewSentinel(kit.DB)
	resolver := &graph.Resolver{
		DB: kit.DB, BatchWait: time.Second / 10, // reads are counted: a busy machine must not split a batch
		Instances: &instance.Service{DB: kit.DB}, Identity: &identity.Service{DB: kit.DB},
		Catalog: &catalog.Service{DB: kit.DB}, Trust: &trust.Service{DB: kit.DB},
		Entitlements: &entitlement.Service{DB: kit.DB},
		Artifacts:    &artifact.Service{DB: kit.DB}, Adapters: &adapter.Service{DB: kit.DB},
		Allocations: &allocation.Service{DB: kit.DB},
		Nodes:       &node.Service{DB: kit.DB}, Tasks: &task.Service{DB: kit.DB, Hub: kit.Hub}, Keys: kit.Ring,
		Blockers: &blocker.Service{DB: kit.DB},
		Progress: &live.Progress{DB: kit.DB, Hub: kit.Hub, Sentinel: sentinel, Log: slog.New(slog.DiscardHandler)},
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present,
		Log:        slog.New(slog.DiscardHandler),
		Extensions: []graphql.HandlerExtension{graph.Extension{Resolver: resolver}},
	})
	require.NoError(t, err)
	feeds, err := event.NewFeeds(t.Context(), kit.DB.Worker())
	require.NoError(t, err)
	authenticate := func(ctx context.Context, shown transport.Credential, _ *http.Request) (context.Context, error) {
		credential, err := tx.ParseCredential(shown.Raw, kit.Ring, time.Now())
		return tx.WithCredential(authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: "graph-test"}),
			credential), err
	}
	streams := &live.Server{Engine: engine, Hub: kit.Hub, Log: slog.New(slog.DiscardHandler), Sentinel: sentinel,
		Sources: feed.Sources(resolver.DB, resolver.Instances, feeds)}
	sockets, err := wsapi.New(wsapi.Options{Engine: engine, Authenticate: authenticate, Streams: streams})
	require.NoError(t, err)
	handler, err := httpapi.New(httpapi.Options{Engine: engine, BodyBytes: 1 << 20, WebSocket: sockets,
		Authenticate: authenticate})
	require.NoError(t, err)
	for _, part := range []func(context.Context) error{sentinel.Run, streams.Run, sockets.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = part(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	b.url = server.URL
	b.fill()
	return b
}

// fill makes the project and its instance.
func (b *wholeBench) fill() {
	tenant := b.Tenant()
	b.project = b.Project(tenant)
	_, stored := b.Launchable(b.project, "apps")
	var held []*db.Allocation
	for range 3 {
		computer, _ := b.Node(1)
		held = append(held, b.Allocation(b.project, computer))
	}
	b.made = b.Instance(b.project, stored, lifecycle.InstanceRunning, held...)
	b.last = b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	b.SQL(`INSERT INTO operation_step (id, operation_id, tenant_id, project_id, name, ordinal, state)
		SELECT 'stp_' || n, id, tenant_id, project_id, 'step ' || n, n, 'PENDING'
		FROM operation, generate_series(1, 3) n`)
	b.viewer = b.User(tenant, platformtest.In(authz.ProjectViewer, b.project))
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	require.NoError(b.t, b.DB.Write(admin, func(ctx context.Context, t *tx.Tx) error {
		return event.Append(ctx, t, b.made, event.Draft{Type: lifecycle.EventInstanceRunning, Message: "it runs"})
	}))
}

// countReads makes the database count how often a caller's scope is set: once a round trip.
func (b *wholeBench) countReads() (reads func() int) {
	b.SQL(`CREATE SEQUENCE entered`)
	b.SQL(`GRANT USAGE ON SEQUENCE entered TO PUBLIC`)
	b.SQL(`ALTER FUNCTION platform.set_scope(text, text[], text[], text[], text, text[]) RENAME TO set_scope_counted`)
	b.SQL(`CREATE FUNCTION platform.set_scope(subject text, projects text[], tenants text[], seen text[], node text,
		attached text[]) RETURNS void
		LANGUAGE plpgsql VOLATILE AS $$ BEGIN
			PERFORM nextval('public.entered'), platform.set_scope_counted(subject, projects, tenants, seen, node, attached);
		END $$`)
	return func() int {
		return b.Count("generate_series(1, (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM entered))", "")
	}
}

func TestADetailOfAnyDepthIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	token := b.Session(b.viewer)
	reads := b.countReads()
	detail := `query($i: ID!) { instance(id: $i) { id name status roles { componentKey desired }
		members(first: 10) { edges { node { id status node { name } allocation { name } } } }
		events(first: 5, after: "s0") { edges { node { seq message } } }
		lastOperation { id state percent steps { name state } } allocations { id name } manifest { version } actions { name } } }`
	through := `query($i: ID!) { node(id: $i) { ... on Instance { id name members(first: 10) { edges { node { id node { name } allocation { name } } } }
		...More } } } fragment More on Instance { lastOperation { id steps { name } } allocations { name } actions { name } }`
	for name, document := range map[string]string{"detail": detail, "through node": through} {
		var read struct {
			Instance, Node struct {
				ID      string
				Members struct {
					Edges []struct {
						Node struct{ Node, Allocation struct{ Name string } }
					}
				}
				LastOperation struct{ Steps []struct{ Name string } }
				Allocations   []struct{ Name string }
				Actions       []struct{ Name string }
			}
		}
		before := reads()
		b.ask(token, document, map[string]any{"i": b.made.ID}, &read)
		require.Equal(t, 1, reads()-before, name)
		got := read.Instance
		if name != "detail" {
			got = read.Node
		}
		require.Len(t, got.Members.Edges, 3)
		require.NotEmpty(t, got.Members.Edges[2].Node.Node.Name)
		require.NotEmpty(t, got.Members.Edges[2].Node.Allocation.Name)
		require.Len(t, got.LastOperation.Steps, 3)
		require.Len(t, got.Allocations, 3)
		require.Len(t, got.Actions, 1)
	}
}

func TestAListReadsANeighbourOnceHoweverLongItIs(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	stored, err := b.Ent.Manifest.Query().Only(t.Context())
	require.NoError(t, err)
	for range 20 {
		b.Operation(b.Instance(b.project, stored, lifecycle.InstanceRunning), lifecycle.InstanceCreate,
			lifecycle.OperationRunning)
	}
	reads := b.countReads()
	var read struct {
		Instances struct {
			Edges []struct {
				Node struct {
					LastOperation struct{ State string }
					Manifest      struct{ Version string }
				}
			}
		}
	}
	b.ask(b.Session(b.viewer),
		`query($p: ID!) { instances(projectId: $p, first: 50) { edges { node { id lastOperation { state } manifest { version } } } } }`,
		map[string]any{"p": b.project.ID}, &read)
	require.Len(t, read.Instances.Edges, 21)
	for _, edge := range read.Instances.Edges {
		require.Equal(t, "RUNNING", edge.Node.LastOperation.State)
		require.Equal(t, "1.0.0", edge.Node.Manifest.Version)
	}
	require.LessOrEqual(t, reads(), 3, "the list, its operations, its manifests")
}

// refusal is the first error of an answer.
type refusal struct {
	Path       []any
	Extensions struct {
		Code          string
		CorrelationID string `json:"correlation_id"`
		Reasons       []struct{ Code, Path string }
	}
}

// refused sends a document that is refused.
func (b *bench) refused(token, document string, variables map[string]any) refusal {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	require.NoError(b.t, err)
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url, bytes.NewReader(body))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Errors []refusal }
	require.NoError(b.t, json.NewDecoder(response.Body).Decode(&answer))
	require.NotEmpty(b.t, answer.Errors)
	return answer.Errors[0]
}

func TestBadPagesAreRefusedWithCodeAndPath(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	token := b.Session(b.viewer)
	for _, c := range []struct{ field, code, path string }{
		{`members(first: 0) { pageInfo { hasNextPage } }`, "INVALID_ARGUMENT", "first"},
		{`members(first: 101) { pageInfo { hasNextPage } }`, "INVALID_ARGUMENT", "first"},
		{`events(first: 501) { pageInfo { hasNextPage } }`, "INVALID_ARGUMENT", "first"},
		{`events(after: "` + page.Cursor("members", "x") + `") { pageInfo { hasNextPage } }`,
			"CURSOR_INVALID", "after"},
		{`members(after: "s1") { pageInfo { hasNextPage } }`, "CURSOR_INVALID", "after"},
		{`operations(after: "` + page.Cursor("instances", "x") + `") { pageInfo { hasNextPage } }`, "CURSOR_INVALID",
			"after"},
	} {
		got := b.refused(token, `query($i: ID!) { instance(id: $i) { id `+c.field+` } }`,
			map[string]any{"i": b.made.ID})
		require.Equal(t, c.code, got.Extensions.Code, c.field)
		require.NotEmpty(t, got.Extensions.Reasons, c.field)
		require.Equal(t, c.path, got.Extensions.Reasons[0].Path, c.field)
	}
}

func TestAnyIdOfAnotherTenantIsNotFoundByNode(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	member, err := b.Ent.Member.Query().First(t.Context())
	require.NoError(t, err)
	happened, err := b.Ent.Event.Query().First(t.Context())
	require.NoError(t, err)
	stranger, mine := b.Session(b.User(b.Tenant())), b.Session(b.viewer)
	for _, id := range []ids.ID{b.made.ID, member.ID, happened.ID, b.last.ID, *member.AllocationID, b.project.ID} {
		document, variables := `query($i: ID!) { node(id: $i) { id __typename } }`, map[string]any{"i": id}
		require.Equal(t, "NOT_FOUND", b.refused(stranger, document, variables).Extensions.Code, id)
		var read struct{ Node struct{ ID ids.ID } }
		b.ask(mine, document, variables, &read)
		require.Equal(t, id, read.Node.ID)
	}
	for _, id := range []string{"ins_nothing", "zzz_0", string(ids.New(ids.Instance)), string(b.made.ID) + "x"} {
		got := b.refused(mine, `query($i: ID!) { node(id: $i) { id } }`, map[string]any{"i": id})
		require.Contains(t, []string{"NOT_FOUND", "INVALID_ARGUMENT"}, got.Extensions.Code, id)
	}
	require.Equal(t, "UNAUTHENTICATED", b.refused("gpu_ses_x", `{ node(id: "ins_x") { id } }`, nil).Extensions.Code)
}

func TestAnUnknownFaultShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	token := b.Session(b.viewer)
	b.SQL(`ALTER TABLE member RENAME TO member_of_old`)
	got := b.refused(token, `query($i: ID!) { instance(id: $i) { members { edges { node { id } } } } }`,
		map[string]any{"i": b.made.ID})
	require.Equal(t, "INTERNAL", got.Extensions.Code)
	require.NotEmpty(t, got.Extensions.CorrelationID)
	require.NotContains(t, fmt.Sprint(got), "member_of_old")
	require.NotContains(t, fmt.Sprint(got), "SQLSTATE")
}
