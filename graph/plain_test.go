package graph

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	tables "github.com/gpuaas/app-platform/graph/generated/plain"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/source"
	"github.com/gpuaas/app-platform/transport"
)

// executorOnly gives responses their loaders and nothing else.
type executorOnly struct{ Extension }

// InterceptResponse leaves the plain path out.
func (e executorOnly) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(e.Resolver.WithLoaders(ctx))
}

// plainOnly answers with the plain path, or not at all.
type plainOnly struct{ Extension }

// InterceptResponse leaves the executor out.
func (e plainOnly) InterceptResponse(ctx context.Context, _ graphql.ResponseHandler) *graphql.Response {
	response, ok := e.Resolver.Answers().Answer(e.Resolver.WithLoaders(ctx))
	if !ok {
		return &graphql.Response{}
	}
	return response
}

// comparison runs one document both ways.
type comparison struct {
	caller                  context.Context
	executor, plain, joined *transport.Engine
}

func newComparison(t *testing.T, kit *platformtest.Kit, caller context.Context) *comparison {
	t.Helper()
	resolver := &Resolver{DB: kit.DB, Instances: &instance.Service{DB: kit.DB}, Catalog: &catalog.Service{DB: kit.DB},
		Keys: kit.Ring, Allocations: &allocation.Service{DB: kit.DB}, Artifacts: &artifact.Service{DB: kit.DB},
		Trust:   &trust.Service{DB: kit.DB},
		Orphans: &orphan.Service{DB: kit.DB}, ArtifactSources: &source.Service{DB: kit.DB},
		Entitlements: &entitlement.Service{DB: kit.DB},
		Nodes:        &node.Service{DB: kit.DB}, Blockers: &blocker.Service{DB: kit.DB}}
	engine := func(extension graphql.HandlerExtension) *transport.Engine {
		made, err := transport.NewEngine(transport.Config{
			Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present,
			Extensions: []graphql.HandlerExtension{extension},
		})
		require.NoError(t, err)
		return made
	}
	both := Extension{Resolver: resolver}
	return &comparison{caller: caller, executor: engine(executorOnly{both}), plain: engine(plainOnly{both}),
		joined: engine(both)}
}

func (c *comparison) run(t *testing.T, engine *transport.Engine, document string) *graphql.Response {
	t.Helper()
	op, refused := engine.Prepare(c.caller, &graphql.RawParams{Query: document})
	require.Empty(t, refused, document)
	return engine.Run(c.caller, op)
}

// same requires that both ways answer the same bytes.
func (c *comparison) same(t *testing.T, document string) {
	t.Helper()
	want, got := c.run(t, c.executor, document), c.run(t, c.plain, document)
	require.Empty(t, want.Errors, document)
	require.NotNil(t, got.Data, "not answered by the plain path: %s", document)
	require.Equal(t, string(want.Data), string(got.Data), document)
}

// odd holds what a writer of JSON must not forget.
const odd = "tab\t, \"quotes\", back\\slash, <b>, é, \u2028, line\n, \x01"

// populated is a project with an instance that has everything, and one that has next to nothing.
func populated(t *testing.T, kit *platformtest.Kit) (context.Context, *db.Instance, *db.Instance) {
	t.Helper()
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	_, stored := kit.Launchable(project, "apps")
	computer, _ := kit.Node(2)
	full := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, computer),
		kit.Allocation(project, computer))
	bare := kit.Instance(project, stored, lifecycle.InstanceFailed)
	op := kit.Operation(full, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	kit.SQL(`UPDATE instance SET health_message = $2, failure_code = 'X', failure_message = $2, failure_owner = 'user'
		WHERE id = $1`, full.ID, odd)
	kit.SQL(`UPDATE operation SET message = $2, error_code = 'Y', error_message = $2, evidence = '{"a": [1, "b"]}'
		WHERE id = $1`, op.ID, odd)
	kit.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, message,
		started_at)
		SELECT 'stp_' || lpad(n::text, 26, '0'), tenant_id, project_id, id, 'step-' || n, n, 'RUNNING', $2, now()
		FROM operation, generate_series(0, 3) n WHERE id = $1`, op.ID, odd)
	require.NoError(t, kit.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, x *tx.Tx) error {
		for range 7 {
			if err := event.Append(ctx, x, full, event.Draft{Type: lifecycle.EventOperationProgress, OperationID: op.ID,
				Message: odd}); err != nil {
				return err
			}
		}
		return nil
	}))
	return kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, project))), full, bare
}

func TestPlainQueriesAnswerWhatTheExecutorAnswersByteForByte(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, bare := populated(t, kit)
	c := newComparison(t, kit, caller)
	var member string
	require.NoError(t, kit.DB.Worker().QueryRow(t.Context(), `SELECT id FROM member LIMIT 1`).Scan(&member))
	kit.SQL(`UPDATE member SET last_operation_id = (SELECT id FROM operation LIMIT 1), labels = '{"a": "b"}'
		WHERE id = $1`, member)
	kit.Artifact(lifecycle.StageStaged)
	kit.ListPrice("", "EUR", "1.25")
	maker := &documents{random: rand.New(rand.NewPCG(7, 7)), schema: c.schema(), tables: tables.Tables(&Resolver{}),
		project: full.ProjectID}
	roots := []string{
		fmt.Sprintf(`instance(id: %q)`, full.ID), fmt.Sprintf(`instance(id: %q)`, bare.ID),
		fmt.Sprintf(`instances(projectId: %q, first: 2)`, full.ProjectID),
		fmt.Sprintf(`instances(projectId: %q, first: 1)`, full.ProjectID),
		fmt.Sprintf(`instances(projectId: %q, filter: {statuses: [RUNNING, CREATED], system: false, search: null})`,
			full.ProjectID),
		fmt.Sprintf(`instances(projectId: %q, filter: {appSlug: %q, search: "e"}, first: 2)`, full.ProjectID,
			full.AppSlug),
		fmt.Sprintf(`instances(projectId: %q, filter: {search: "nothing has this name"})`, full.ProjectID),
		fmt.Sprintf(`operations(projectId: %q)`, full.ProjectID),
		fmt.Sprintf(`operations(projectId: %q, states: [])`, full.ProjectID),
		fmt.Sprintf(`operations(projectId: %q, states: [RUNNING, FAILED], first: 1)`, full.ProjectID),
		fmt.Sprintf(`allocations(projectId: %q)`, full.ProjectID), `apps(first: 5)`,
		fmt.Sprintf(`app(slug: %q)`, full.AppSlug),
		fmt.Sprintf(`allocations(projectId: %q, statuses: [READY, RELEASED], first: 1)`, full.ProjectID),
		`artifacts(first: 5)`, fmt.Sprintf(`member(id: %q)`, member),
		fmt.Sprintf(`auditEntries(projectId: %q, first: 3)`, full.ProjectID),
		fmt.Sprintf(
			`searchAudit(filter: {projectId: %q, from: "2026-01-01T00:00:00.123456789+02:00", allowed: true, actorKinds: null})`, full.ProjectID),
		`manifests(first: 1)`, fmt.Sprintf(`manifests(appSlug: %q, stages: [ACTIVE])`, full.AppSlug),
		`manifests(search: "nothing")`,
	}
	for n := range 1000 {
		c.same(t, maker.document(roots[n%len(roots)]))
	}
	require.Empty(t, maker.missing(), "fields of the tables that no document asked for")
}

func TestWhatIsNotPlainIsTheExecutors(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	c := newComparison(t, kit, caller)
	for name, document := range map[string]string{
		"a directive": fmt.Sprintf(`{ instance(id: %q) { id name @skip(if: true) } }`, full.ID),
		"one in a fragment": fmt.Sprintf(
			`{ instance(id: %q) { ...F } } fragment F on Instance { id name @include(if: false) }`, full.ID),
		"another field": fmt.Sprintf(`{ instance(id: %q) { id blockers { code } } }`, full.ID),
		"pages in a list": fmt.Sprintf(
			`{ instances(projectId: %q) { edges { node { members { edges { node { id } } } } } } }`, full.ProjectID),
		"one for a list": fmt.Sprintf(`{ instances(projectId: %q, filter: {statuses: RUNNING}) { edges { cursor } } }`,
			full.ProjectID),
	} {
		require.Nil(t, c.run(t, c.plain, document).Data, name)
		want, got := c.run(t, c.executor, document), c.run(t, c.joined, document)
		require.Equal(t, string(want.Data), string(got.Data), name)
	}
}

func TestErrorsOfPlainQueriesAreTheExecutors(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	c := newComparison(t, kit, caller)
	for _, document := range []string{
		`{ instance(id: "ins_00000000000000000000000000") { id } }`,
		fmt.Sprintf(`{ a: instance(id: %q) { id events(first: 0) { edges { cursor } } } }`, full.ID),
		fmt.Sprintf(`{ instances(projectId: %q, after: "nonsense") { edges { cursor } } }`, full.ProjectID),
		fmt.Sprintf(`{ instances(projectId: %q, filter: {search: %q}) { edges { cursor } } }`, full.ProjectID,
			strings.Repeat("x", 101)),
		fmt.Sprintf(`{ searchAudit(filter: {projectId: %q, from: "yesterday"}) { edges { cursor } } }`, full.ProjectID),
		`{ searchAudit(filter: {projectId: "nonsense"}) { edges { cursor } } }`,
	} {
		want, got := c.run(t, c.executor, document), c.run(t, c.joined, document)
		require.NotEmpty(t, want.Errors)
		require.NotEqual(t, "INTERNAL", want.Errors[0].Extensions["code"], document)
		require.Equal(t, want.Errors[0].Extensions["code"], got.Errors[0].Extensions["code"])
		require.Equal(t, want.Errors[0].Path, got.Errors[0].Path)
		require.Equal(t, string(want.Data), string(got.Data))
	}
}

func TestOperationsAreAnsweredPlainly(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	caller, full, _ := populated(t, kit)
	c := newComparison(t, kit, caller)
	last, err := operation.List(caller, kit.DB, operation.Filter{InstanceID: full.ID}, pageOf(1))
	require.NoError(t, err)
	c.same(t,
		fmt.Sprintf(`{ operation(id: %q) { id kind steps { name state evidence } requester { kind } error { code } } }`,
			last.Rows[0].ID))
}

func (c *comparison) schema() *ast.Schema {
	return exec.NewExecutableSchema(exec.Config{Resolvers: &Resolver{}}).Schema()
}

// documents makes queries that are plain.
type documents struct {
	random *rand.Rand
	schema *ast.Schema
	tables map[string]*plain.Type
	asked  map[string]bool
	// project is the argument of the fields that require a project.
	project ids.ID
}

// alone are fields that are not selected for the elements of a list.
var alone = []string{"members", "operations", "events", "manifest", "actions", "allocations", "steps"}

// mostSpreads keeps documents within what the transport takes.
const mostSpreads = 250

func (d *documents) document(root string) string {
	name := root[:strings.Index(root, "(")]
	field := d.schema.Query.Fields.ForName(name)
	for before := maps.Clone(d.asked); ; d.asked = maps.Clone(before) {
		made := "{ first: " + root + d.selection(field.Type.Name(), false, 5) + " __typename }"
		if strings.Count(made, "...") <= mostSpreads {
			return made
		}
	}
}

// selection chooses fields of a type, some of them twice, by another name or in a fragment.
func (d *documents) selection(of string, listed bool, depth int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.tables[of].Fields)) {
		field := d.schema.Types[of].Fields.ForName(name)
		if d.random.IntN(3) == 0 || (listed && slices.Contains(alone, name)) ||
			(depth == 0 && d.tables[field.Type.Name()] != nil) {
			continue
		}
		out = append(out, d.field(of, field, listed, depth))
	}
	out = append(out, "__typename")
	d.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return " { " + strings.Join(out, " ") + " }"
}

func (d *documents) field(of string, field *ast.FieldDefinition, listed bool, depth int) string {
	if d.asked == nil {
		d.asked = map[string]bool{}
	}
	d.asked[of+"."+field.Name] = true
	text := field.Name
	if field.Arguments.ForName("projectId") != nil {
		text += fmt.Sprintf("(projectId: %q)", d.project)
	}
	if d.tables[field.Type.Name()] != nil {
		if field.Arguments.ForName("first") != nil {
			text = fmt.Sprintf("p_%s: %[1]s(first: %d)", text, 1+d.random.IntN(9))
		}
		text += d.selection(field.Type.Name(), listed || field.Type.Elem != nil, depth-1)
	}
	switch d.random.IntN(6) {
	case 0:
		return "... on " + of + " { " + text + " }"
	case 1:
		return "... { " + text + " }"
	}
	return text
}

// missing returns the fields that no document has selected.
func (d *documents) missing() (names []string) {
	for name, table := range d.tables {
		for field := range table.Fields {
			if name != "Query" && !d.asked[name+"."+field] {
				names = append(names, name+"."+field)
			}
		}
	}
	return names
}

func pageOf(first int) page.Args { return page.Args{First: first} }
