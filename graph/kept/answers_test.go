package kept_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/transport"
)

// executorOnly answers without the plain path, so that every answer is computed from what is read for it.
type executorOnly struct{ graph.Extension }

// InterceptResponse gives the response its loaders and nothing else.
func (e executorOnly) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return denial.Record(ctx, e.Resolver.DB, next(e.Resolver.WithLoaders(ctx)))
}

// documents are what the console and the command line ask, and what no proof covers.
var documents = []string{
	`{ instance(id: $id) { id name status health healthMessage revision updatedAt config
		roles { componentKey desired current } failure { code message }
		members(first: 50) { edges { node { id status cordoned health healthMessage labels: componentKey } } pageInfo { hasNextPage } }
		lastOperation { id kind state phase percent message waitsFor { name } error { code } steps { name state message attempt } }
		events(first: 3) { edges { node { seq type message payload } } pageInfo { hasNextPage endCursor } } } }`,
	`{ instance(id: $id) { name lastOperation { percent } } }`,
	`{ instances(projectId: $project, first: 3) { edges { cursor node { id name status health
		lastOperation { id state percent message } roles { healthy } } } pageInfo { hasNextPage endCursor } } }`,
	`{ instances(projectId: $project) { edges { node { id releasedAt } } } }`,
	`{ instances(projectId: $project, first: 2, filter: {statuses: [RUNNING], search: "x"}) { edges { node { id name lastOperation { message } } }
		pageInfo { hasNextPage } } }`,
	`{ instances(projectId: $project, filter: {system: false, statuses: null}) { edges { node { id health } } } }`,
	`{ instance(id: $id) { name manifest { displayName } } }`,
	`{ a: instance(id: $id) { name } b: instances(projectId: $project) { edges { node { id } } } }`,
}

// house is two tenants with instances, and callers whose rights change.
type house struct {
	*platformtest.Kit
	resolver       *graph.Resolver
	kept, executor *transport.Engine
	projects       []*db.Project
	instances      []*db.Instance
	people         []*db.User
	callers        []context.Context
}

func newHouse(t *testing.T, bytes int) *house {
	t.Helper()
	h := &house{Kit: platformtest.New(t)}
	h.resolver = &graph.Resolver{DB: h.DB, Instances: &instance.Service{DB: h.DB}, Keys: h.Ring, KeptAnswers: bytes}
	both := graph.Extension{Resolver: h.resolver}
	h.kept, h.executor = h.engine(t, both), h.engine(t, executorOnly{both})
	ours, theirs := h.Tenant(), h.Tenant()
	node, _ := h.Node(8)
	for _, tenant := range []*db.Tenant{ours, ours, theirs} {
		project := h.Project(tenant)
		_, stored := h.Launchable(project, "apps")
		h.projects = append(h.projects, project)
		for range 4 {
			one := h.Instance(project, stored, lifecycle.InstanceRunning, h.Allocation(project, node))
			h.instances = append(h.instances, one)
			h.operation(one, lifecycle.OperationRunning)
		}
	}
	for _, grants := range [][]platformtest.Grant{
		{platformtest.In(authz.ProjectAdmin, h.projects[0])}, {platformtest.In(authz.ProjectViewer, h.projects[0])},
		{platformtest.Across(authz.TenantAdmin, ours)}, {},
	} {
		h.login(h.User(ours, grants...))
	}
	h.login(h.User(theirs, platformtest.Across(authz.TenantAdmin, theirs)))
	h.login(h.User(nil, platformtest.OnPlatform(authz.PlatformOperator)))
	for _, role := range []authz.Role{authz.ProjectAdmin, authz.ProjectViewer} { // whose rights others have too
		h.login(h.User(ours, platformtest.In(role, h.projects[0])))
	}
	return h
}

func (h *house) engine(t *testing.T, extension graphql.HandlerExtension) *transport.Engine {
	t.Helper()
	made, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: h.resolver}), Present: denial.Present,
		Extensions: []graphql.HandlerExtension{extension},
	})
	require.NoError(t, err)
	return made
}

func (h *house) login(person *db.User) {
	h.people, h.callers = append(h.people, person), append(h.callers, h.As(person))
}

// operation makes an operation the last of an instance, with two steps.
func (h *house) operation(of *db.Instance, state lifecycle.OperationState) {
	op := h.Operation(of, lifecycle.InstanceCreate, state)
	h.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state)
		SELECT platform.mint('stp'), tenant_id, project_id, id, 'step-' || n, n, 'RUNNING' FROM operation, generate_series(0, 1) n
		WHERE id = $1`, op.ID)
	h.SQL(`UPDATE instance SET last_operation_id = $2 WHERE id = $1`, of.ID, op.ID)
}

// ask runs a document as a caller and returns all of the answer.
func (h *house) ask(t *testing.T, engine *transport.Engine, caller context.Context, document string,
	of *db.Instance) string {
	t.Helper()
	variables := map[string]any{}
	var declared []string
	for name, value := range map[string]string{"id": string(of.ID), "project": string(of.ProjectID)} {
		if strings.Contains(document, "$"+name) {
			variables[name], declared = value, append(declared, "$"+name+": ID!")
		}
	}
	slices.Sort(declared) // one text for one document
	return h.run(t, engine, caller, "query Q("+strings.Join(declared, ", ")+") "+document, variables)
}

func (h *house) run(t *testing.T, engine *transport.Engine, caller context.Context, text string,
	variables map[string]any) string {
	t.Helper()
	op, refused := engine.Prepare(caller, &graphql.RawParams{Variables: variables, Query: text})
	require.Empty(t, refused, text)
	answer, err := json.Marshal(engine.Run(caller, op))
	require.NoError(t, err)
	return string(answer)
}

// change is something that happens; its text is for the history.
type change struct {
	name string
	sql  string // of an instance's id in $1, and of a person's in $2
}

// changes are what rows go through, and what rights do. Each statement uses both arguments.
var changes = []change{
	{"row", `UPDATE instance SET health_message = health_message || 'x' WHERE id = $1 AND $2 <> ''`},
	{"name", `UPDATE instance SET name = name || 'x' WHERE id = $1 AND $2 <> ''`},
	{"member", `UPDATE member SET health_message = health_message || 'x' WHERE instance_id = $1 AND $2 <> ''`},
	{"cordoned", `UPDATE member SET cordoned = NOT cordoned WHERE instance_id = $1 AND $2 <> ''`},
	{"percent", `UPDATE operation SET percent = (percent + 7) % 100, message = message || 'x'
		WHERE id = (SELECT last_operation_id FROM instance WHERE id = $1) AND $2 <> ''`},
	{"step", `UPDATE operation_step SET message = message || 'x', attempt = attempt + 1
		WHERE operation_id = (SELECT last_operation_id FROM instance WHERE id = $1) AND $2 <> ''`},
	{"end", `UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE ended_at IS NULL
		AND id = (SELECT last_operation_id FROM instance WHERE id = $1) AND $2 <> ''`},
	{"event", `WITH i AS (UPDATE instance SET revision = revision + 1 WHERE id = $1 AND $2 <> '' RETURNING *)
		INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug, permission_family, message, payload,
			correlation_id, occurred_at)
		SELECT platform.mint('evt'), tenant_id, project_id, id, revision, 'apps.instance.updated', app_slug, permission_family, 'm' || revision, '{}',
			'c', now() FROM i`},
	{"stopping", `UPDATE instance SET status = 'STOPPING' WHERE id = $1 AND status = 'RUNNING' AND $2 <> ''`},
	{"released", `UPDATE instance SET released_at = now() WHERE id = $1 AND $2 <> ''`},
	{"revoke", `UPDATE role_binding SET revoked_at = now() WHERE user_id = $2 AND $1 <> ''`},
	{"back", `UPDATE role_binding SET revoked_at = NULL WHERE user_id = $2 AND $1 <> ''`},
	{"less", `UPDATE role_binding SET role = 'app_publisher' WHERE user_id = $2 AND $1 <> ''
		AND project_id IS NOT NULL`},
	{"over", `UPDATE role_binding SET expires_at = now() - interval '1 second' WHERE user_id = $2 AND $1 <> ''`},
	{"lasting", `UPDATE role_binding SET expires_at = NULL WHERE user_id = $2 AND $1 <> ''`},
	{"disabled", `UPDATE person SET disabled_at = now() WHERE id = $2 AND $1 <> ''`},
	{"enabled", `UPDATE person SET disabled_at = NULL WHERE id = $2 AND $1 <> ''`},
	{"logged out", `UPDATE session SET revoked_at = now() WHERE user_id = $2 AND $1 <> ''`},
	{"logged in", `UPDATE session SET revoked_at = NULL WHERE user_id = $2 AND $1 <> ''`},
	{"ended session", `UPDATE session SET expires_at = now() - interval '1 second' WHERE user_id = $2 AND $1 <> ''`},
	{"lasting session", `UPDATE session SET expires_at = now() + interval '1 hour' WHERE user_id = $2 AND $1 <> ''`},
	{"scopes lost", `DELETE FROM platform.access_scope WHERE $1 <> $2`},
}

// heal gives a person all rights back.
func (h *house) heal(person *db.User) {
	h.SQL(`UPDATE role_binding SET revoked_at = NULL, expires_at = NULL,
		role = CASE WHEN project_id IS NULL THEN role ELSE 'project_admin' END WHERE user_id = $1`, person.ID)
	h.SQL(`UPDATE person SET disabled_at = NULL WHERE id = $1`, person.ID)
	h.SQL(`UPDATE session SET revoked_at = NULL, expires_at = now() + interval '1 hour' WHERE user_id = $1`, person.ID)
}

// What is shown is at every moment what the executor would say, whatever happens in between, to whomever: byte for
// byte, refusals among it.
func TestAKeptAnswerIsTheExecutors(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	random := rand.New(rand.NewPCG(1, uint64(len(changes))))
	var history []string
	for range 400 {
		who := random.IntN(len(h.people))
		if random.IntN(4) == 0 {
			h.heal(h.people[who])
			history = append(history, fmt.Sprintf("healed %d", who))
		}
		if random.IntN(3) == 0 {
			what, of, who := changes[random.IntN(len(changes))], random.IntN(len(h.instances)),
				random.IntN(len(h.people))
			h.SQL(what.sql, h.instances[of].ID, h.people[who].ID)
			history = append(history, fmt.Sprintf("%s of %d, %d", what.name, of, who))
		}
		// Few instances and documents, so that many queries repeat.
		of := h.instances[random.IntN(3)*4+2+random.IntN(2)]
		document := documents[random.IntN(7)] // errors of two fields come in any order
		want := h.ask(t, h.executor, h.callers[who], document, of)
		require.Equal(t, want, h.ask(t, h.kept, h.callers[who], document, of), "%s\n%d of %s\n%s", document, who, of.ID,
			strings.Join(history, "\n"))
		require.Equal(t, want, h.ask(t, h.kept, h.callers[who], document, of), "again")
	}
	answers := h.resolver.Answers()
	require.Greater(t, answers.Shown(), int64(50), "little was shown again")
	require.Greater(t, answers.Fresh(), int64(50))
}

// Each single change is noticed: query, change, query again.
func TestEveryChangeIsNoticed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	caller, person := h.callers[0], h.people[0]
	for _, document := range slices.Concat(documents[4:6], documents[:3]) {
		for _, what := range changes {
			of := h.instances[2+len(what.name)%2]
			h.heal(person)
			before := h.resolver.Answers().Shown()
			for range 3 { // the caller's scope is written, an answer is kept, and shown
				h.ask(t, h.kept, caller, document, of)
			}
			require.Greater(t, h.resolver.Answers().Shown(), before, "nothing is shown again: %s", document)
			h.SQL(what.sql, of.ID, person.ID)
			require.Equal(t, h.ask(t, h.executor, caller, document, of),
				h.ask(t, h.kept, caller, document, of), what.name)
		}
	}
}

// An operation that has ended is proved by its instance, also where somebody changes it.
func TestAChangeOfAnEndedOperationIsNoticed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	of := h.instances[3]
	h.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE instance_id = $1`, of.ID)
	for range 3 {
		h.ask(t, h.kept, h.callers[0], documents[2], of)
	}
	require.Positive(t, h.resolver.Answers().Shown())
	h.SQL(`UPDATE operation SET message = 'said afterwards' WHERE instance_id = $1`, of.ID)
	require.Contains(t, h.ask(t, h.kept, h.callers[0], documents[2], of), "said afterwards")
}

// What somebody sees through a share, by a key, or beyond the memory's bound is read each time.
func TestWhatIsNotProvedIsNotKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	for _, document := range documents[6:] {
		for range 3 {
			h.ask(t, h.kept, h.callers[0], document, h.instances[0])
		}
	}
	answers := h.resolver.Answers()
	kept, _ := answers.Size()
	require.Zero(t, kept, "a document that no proof covers was kept")
	require.Zero(t, answers.Fresh())

	h.SQL(`UPDATE instance SET config = jsonb_build_object('text', repeat('x', 20000))
		WHERE id = $1`, h.instances[0].ID)
	for range 3 {
		h.ask(t, h.kept, h.callers[0], documents[0], h.instances[0])
	}
	kept, _ = answers.Size()
	require.Zero(t, kept, "an answer larger than a 64th of the memory was kept")

	for i := range 200 {
		h.ask(t, h.kept, h.callers[0], fmt.Sprintf(`{ a%d: instance(id: $id) { name
			events { edges { node { id } } } members { edges { node { id } } } } }`, i), h.instances[1])
	}
	kept, bytes := answers.Size()
	require.Positive(t, kept)
	require.LessOrEqual(t, bytes, 1<<20)

	none := newHouse(t, 0)
	for range 3 {
		none.ask(t, none.kept, none.callers[0], documents[0], none.instances[0])
	}
	require.Zero(t, none.resolver.Answers().Shown())
}
