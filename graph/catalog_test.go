package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
)

// bench is the public API over a database of its own.
type bench struct {
	*platformtest.Kit
	url string
	t   *testing.T
}

func nobodyAnswers(context.Context, adapterclient.Target) (json.RawMessage, error) {
	return nil, fault.New(fault.AdapterUnavailable, "nobody answers")
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	resolver := &graph.Resolver{
		DB: kit.DB, Instances: &instance.Service{DB: kit.DB},
		Identity: &identity.Service{DB: kit.DB, DevLogins: true, PublicURL: platformtest.Issuer},
		Catalog:  &catalog.Service{DB: kit.DB}, Entries: &entry.Service{DB: kit.DB}, Trust: &trust.Service{DB: kit.DB},
		Entitlements: &entitlement.Service{DB: kit.DB}, Artifacts: &artifact.Service{DB: kit.DB},
		Adapters: &adapter.Service{DB: kit.DB, Describe: nobodyAnswers},
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present,
		Log:        slog.New(slog.DiscardHandler),
		Extensions: []graphql.HandlerExtension{graph.Extension{Resolver: resolver}},
	})
	require.NoError(t, err)
	handler, err := httpapi.New(httpapi.Options{Engine: engine, BodyBytes: 1 << 20,
		Authenticate: func(ctx context.Context, shown transport.Credential, _ *http.Request) (context.Context, error) {
			credential, err := tx.ParseCredential(shown.Raw, kit.Ring, time.Now())
			return tx.WithCredential(authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: "graph-test"}),
				credential), err
		}})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &bench{Kit: kit, url: server.URL, t: t}
}

// ask sends a document and fails the test on any error; into gets the data.
func (b *bench) ask(token, document string, variables map[string]any, into any) {
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
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	var answer struct {
		Data   json.RawMessage
		Errors []json.RawMessage
	}
	require.NoError(b.t, json.Unmarshal(raw, &answer), string(raw))
	require.Empty(b.t, answer.Errors, string(raw))
	require.NoError(b.t, json.Unmarshal(answer.Data, into))
}

func TestAManifestIsPublishedAndReadBackThroughTheCatalog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	artifact, runtime := b.Artifact(lifecycle.StageActive), b.Adapter("http://adapter.test", nil)
	operator, viewer := b.Session(b.Operator()), b.Session(b.User(tenant,
		platformtest.In(authz.ProjectViewer, project)))

	var made struct{ CreateApp struct{ ID, Slug string } }
	b.ask(operator,
		`mutation { createApp(input: {slug: "demo", displayName: "Demo", summary: "A demo", permissionFamily: "apps", idempotencyKey: "k"}) { id slug } }`, nil, &made)
	app, err := b.Ent.App.Get(t.Context(), ids.ID(made.CreateApp.ID))
	require.NoError(t, err)
	document := platformtest.Document(app, "1.0.0", runtime, artifact)

	var linted struct{ LintManifest struct{ Ok bool } }
	b.ask(viewer, `query ($d: JSON!) { lintManifest(document: $d) { ok reasons { code message path } } }`,
		map[string]any{"d": document}, &linted)
	require.True(t, linted.LintManifest.Ok)
	var published struct{ PublishManifest struct{ ID, Digest string } }
	b.ask(operator,
		`mutation ($d: JSON!) { publishManifest(input: {document: $d, idempotencyKey: "k"}) { id digest } }`,
		map[string]any{"d": document}, &published)
	b.SQL(`UPDATE manifest SET stage = 'STAGED' WHERE id = $1`, published.PublishManifest.ID)
	b.SQL(`UPDATE manifest SET stage = 'CANARY' WHERE id = $1`, published.PublishManifest.ID)
	b.ask(operator,
		`mutation ($id: ID!) { promoteManifest(input: {manifestId: $id, to: ACTIVE, reason: "tested", override: "a test"}) { stage } }`,
		map[string]any{"id": published.PublishManifest.ID}, &struct{}{})
	b.ask(operator, `mutation ($p: ID!) { grantEntitlement(projectId: $p, appSlug: "demo") { id appSlug } }`,
		map[string]any{"p": project.ID}, &struct{}{})
	b.App("apps") // another, without a manifest

	var read struct {
		Apps struct {
			Edges []struct {
				Node struct {
					Slug           string
					Entitled       bool
					ActiveManifest *struct {
						Version, Digest, Docs                 string
						Document, Compatibility, ConfigSchema map[string]any
						Components                            []struct {
							Key           string
							Min, Max      int
							DefaultNumber int `json:"default"`
						}
						Actions   []struct{ Name, Risk, PermissionKey string }
						Artifacts []struct {
							Digest    string
							SizeBytes float64
						}
					}
					Manifests struct {
						Edges    []struct{ Node struct{ Version string } }
						PageInfo struct{ HasNextPage bool }
					}
				}
			}
		}
	}
	b.ask(viewer, `query ($p: ID!) { apps { edges { node { slug entitled(projectId: $p)
		activeManifest { version digest docs document compatibility configSchema components { key min max default }
			actions { name risk permissionKey inputSchema } artifacts { digest sizeBytes } }
		manifests { edges { node { version } } pageInfo { hasNextPage } } } } } }`,
		map[string]any{"p": project.ID}, &read)
	require.Len(t, read.Apps.Edges, 2)
	other, demo := read.Apps.Edges[0].Node, read.Apps.Edges[1].Node
	require.Equal(t, "demo", demo.Slug)
	require.True(t, demo.Entitled)
	require.False(t, other.Entitled)
	require.Nil(t, other.ActiveManifest)
	active := demo.ActiveManifest
	require.Equal(t, published.PublishManifest.Digest, active.Digest)
	encoded, err := json.Marshal(document)
	require.NoError(t, err)
	sent, err := json.Marshal(active.Document)
	require.NoError(t, err)
	require.JSONEq(t, string(encoded), string(sent))
	require.Equal(t, "multi_allocation", active.Compatibility["network_span"])
	require.Equal(t, "object", active.ConfigSchema["type"])
	require.Equal(t, "# App", active.Docs)
	require.Equal(t, 8, active.Components[0].Max)
	require.Equal(t, 1, active.Components[0].DefaultNumber)
	require.Equal(t, "READ", active.Actions[0].Risk)
	require.Equal(t, artifact.Digest, active.Artifacts[0].Digest)
	require.InDelta(t, 1_024, active.Artifacts[0].SizeBytes, 0)
	require.Equal(t, "1.0.0", demo.Manifests.Edges[0].Node.Version)
}

func TestIdentityIsMadeAndReadBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	operator := b.Session(b.Operator())
	var tenant struct{ CreateTenant struct{ ID string } }
	b.ask(operator, `mutation { createTenant(input: {slug: "acme", displayName: "Acme", idempotencyKey: "k"}) { id } }`,
		nil, &tenant)
	var project struct{ CreateProject struct{ ID string } }
	b.ask(operator,
		`mutation ($t: ID!) { createProject(input: {tenantId: $t, slug: "lab", displayName: "Lab", idempotencyKey: "k"}) { id } }`,
		map[string]any{"t": tenant.CreateTenant.ID}, &project)
	var user struct{ CreateUser struct{ ID string } }
	b.ask(operator,
		`mutation ($t: ID!) { createUser(input: {tenantId: $t, email: "ann@example.test", displayName: "Ann", idempotencyKey: "k"}) { id } }`,
		map[string]any{"t": tenant.CreateTenant.ID}, &user)
	b.ask(operator,
		`mutation ($u: ID!, $p: ID!) { grantRole(input: {subjectId: $u, role: "project_admin", projectId: $p}) { id subjectId } }`,
		map[string]any{"u": user.CreateUser.ID, "p": project.CreateProject.ID}, &struct{}{})
	var link struct{ CreateLoginLink struct{ Code, URL string } }
	b.ask(operator, `mutation ($u: ID!) { createLoginLink(userId: $u) { code url expiresAt } }`,
		map[string]any{"u": user.CreateUser.ID}, &link)
	session, err := (&identity.Service{DB: b.DB, DevLogins: true}).RedeemLogin(t.Context(), link.CreateLoginLink.Code)
	require.NoError(t, err)
	ann := session.Token

	var account struct{ CreateServiceAccount struct{ ID string } }
	b.ask(ann,
		`mutation ($p: ID!) { createServiceAccount(input: {projectId: $p, name: "ci-bot", permissionKeys: ["apps.instance.create"], idempotencyKey: "k"}) { id } }`,
		map[string]any{"p": project.CreateProject.ID}, &account)
	var key struct {
		CreateServiceAccountKey struct {
			Secret string
			Key    struct{ ID string }
		}
	}
	b.ask(ann, `mutation ($s: ID!) { createServiceAccountKey(input: {serviceAccountId: $s}) { secret key { id } } }`,
		map[string]any{"s": account.CreateServiceAccount.ID}, &key)

	var read struct {
		Viewer struct {
			Actor    struct{ Kind, ID, Name string }
			Tenant   struct{ Slug string }
			Bindings []struct{ Role, ProjectID string }
			Projects struct {
				Edges []struct{ Node struct{ Slug string } }
			}
			Permissions []string
		}
		ServiceAccounts struct {
			Edges []struct {
				Node struct {
					Name string
					Keys []struct{ ID string }
				}
			}
		}
		AuditEntries struct {
			Edges []struct {
				Node struct {
					Action string
					Actor  struct{ Name string }
				}
			}
		}
	}
	b.ask(ann, `query ($p: ID!) { viewer { actor { kind id name } tenant { slug } bindings { role projectId } projects { edges { node { slug } } } permissions(projectId: $p) }
		serviceAccounts(projectId: $p) { edges { node { name keys { id } } } }
		auditEntries(projectId: $p) { edges { node { action actor { name } } } } }`,
		map[string]any{"p": project.CreateProject.ID}, &read)
	require.Equal(t, "Ann", read.Viewer.Actor.Name)
	require.Equal(t, "acme", read.Viewer.Tenant.Slug)
	require.Equal(t, "project_admin", read.Viewer.Bindings[0].Role)
	require.Equal(t, "lab", read.Viewer.Projects.Edges[0].Node.Slug)
	require.Contains(t, read.Viewer.Permissions, "apps.instance.create")
	require.Equal(t, key.CreateServiceAccountKey.Key.ID, read.ServiceAccounts.Edges[0].Node.Keys[0].ID)
	var actions []string
	for _, edge := range read.AuditEntries.Edges {
		actions = append(actions, edge.Node.Action)
	}
	require.Equal(t, []string{"createServiceAccountKey", "createServiceAccount", "grantRole", "createProject"}, actions,
		"newest first")

	for kind, id := range map[string]string{
		"Tenant": tenant.CreateTenant.ID, "Project": project.CreateProject.ID, "User": user.CreateUser.ID,
		"ServiceAccount": account.CreateServiceAccount.ID, "ServiceAccountKey": key.CreateServiceAccountKey.Key.ID,
	} {
		var found struct {
			Node struct {
				Typename string `json:"__typename"`
			}
		}
		b.ask(ann, `query ($id: ID!) { node(id: $id) { __typename } }`, map[string]any{"id": id}, &found)
		require.Equal(t, kind, found.Node.Typename)
	}
	b.ask(ann, `mutation ($k: ID!) { revokeServiceAccountKey(keyId: $k, reason: "rotated") { revokedAt } }`,
		map[string]any{"k": key.CreateServiceAccountKey.Key.ID}, &struct{}{})
	require.Equal(t, 1, b.Count("service_account_key", "revoked_at IS NOT NULL"))
}
