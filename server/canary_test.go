package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// aviary is the whole under test: the server, an agent's process, an adapter, and what each of them writes.
type aviary struct {
	*bench
	canaries                canaries
	server, agent, adapters *journal
	dir                     string // of the agent
	third                   strings.Builder
}

// leaks greps every sink.
func (a *aviary) leaks() (found []string) {
	a.t.Helper()
	a.Audit() // denials are written apart
	found = append(found, a.canaries.in("the server's log", a.server.String())...)
	found = append(found, a.canaries.in("the agent's log", a.agent.String())...)
	found = append(found, a.canaries.in("the adapter's log", a.adapters.String())...)
	found = append(found, a.canaries.in("answers to others", a.third.String())...)
	for table, text := range a.dump() {
		found = append(found, a.canaries.in("table "+table, text)...)
	}
	require.NoError(a.t, filepath.WalkDir(a.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || a.ownFile(path) {
			return err
		}
		content, err := os.ReadFile(path)
		found = append(found, a.canaries.in("file "+path, string(content))...)
		return err
	}))
	return found
}

// ownFile says that a secret belongs there: the agent's credential, and what the member's own commands wrote.
func (a *aviary) ownFile(path string) bool {
	return filepath.Base(path) == "credential.json" || strings.HasPrefix(filepath.Base(path), "taken-")
}

// dump is every row of every table as text, in every schema; bytes are in hexadecimal.
func (a *aviary) dump() map[string]string {
	a.t.Helper()
	rows, err := a.Admin.Query(a.t.Context(), `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name)
		FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
	require.NoError(a.t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(a.t, err)
	require.Greater(a.t, len(tables), 20)
	found := map[string]string{}
	for _, table := range tables {
		rows, err := a.Admin.Query(a.t.Context(), `SELECT t::text FROM `+table+` t`)
		require.NoError(a.t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(a.t, err)
		found[table] = strings.Join(texts, "\n")
	}
	return found
}

func TestNoSecretIsLeftInAnySink(t *testing.T) {
	t.Parallel()
	a := newAviary(t)
	w := a.populate()
	defer a.teardown(w)
	a.deliver(w)
	a.fail(w)
	a.look(w)
	require.Empty(t, a.leaks())
	require.NotEmpty(t, a.agent.String())
	require.NotEmpty(t, a.server.String())

	for sink, plant := range map[string]func(value string){
		"the server's log":  func(v string) { a.server.logger().Info("x", "value", v) },
		"the agent's log":   func(v string) { a.agent.logger().Info("x", "value", v) },
		"the adapter's log": func(v string) { a.adapters.logger().Info("x", "value", v) },
		"answers to others": func(v string) { a.third.WriteString(`{"data":"` + v + `"}`) },
		"file ": func(v string) {
			require.NoError(t, os.WriteFile(filepath.Join(a.dir, "planted"), []byte(v), 0o600))
		},
		"table public.audit_entry": func(v string) {
			a.SQL(`INSERT INTO audit_entry (id, actor_kind, actor_id, actor_name, permission_key, action, allowed,
				object_id, after, correlation_id, created_at)
				VALUES ('aud_planted', 'USER', 'x', 'x', 'x', 'x', true, 'x', jsonb_build_object('x', $1::text), 'x',
				now())`, v)
		},
		"table public.operation": func(v string) { a.SQL(`UPDATE operation SET message = $1`, v) },
		"table public.node_task": func(v string) {
			a.SQL(`UPDATE node_task SET spec = jsonb_build_object('x',
			$1::text)`, v)
		},
		"table public.idempotency": func(v string) {
			a.SQL(`UPDATE idempotency SET result = jsonb_build_object('x',
			$1::text)`, v)
		},
		"table public.runtime_secret": func(v string) { a.SQL(`UPDATE runtime_secret SET sealed = $1`, []byte(v)) },
	} {
		value := "planted-" + fmt.Sprintf("%x", sink)
		a.canaries[sink] = value
		plant(value)
		require.Contains(t, strings.Join(a.leaks(), "\n"), sink+" in "+sink, "a leak is found where it is planted")
		delete(a.canaries, sink)
	}
}

// world is what the canaries live in.
type world struct {
	project, instance, member, digest, repository, registry string
	adapter                                                 *adapter.Client
	admin, operator, viewer                                 string
}

// populate plants the secrets that need no agent: a session, a key, an enrolment, a webhook's secret, sealed boxes.
func (a *aviary) populate() *world {
	a.t.Helper()
	w := a.house()
	ctx := a.t.Context()
	admin := a.client(w.admin)
	account, err := gql.CreateServiceAccount(ctx, admin, gql.CreateServiceAccountInput{ProjectId: w.project,
		Name: "robot", PermissionKeys: []string{"secret.read"}, IdempotencyKey: "robot"})
	require.NoError(a.t, err)
	key, err := gql.CreateServiceAccountKey(ctx, admin,
		gql.CreateServiceAccountKeyInput{ServiceAccountId: account.CreateServiceAccount.Id})
	require.NoError(a.t, err)
	a.canaries["a service account's key"] = key.CreateServiceAccountKey.Secret
	hook, err := gql.CreateWebhook(ctx, admin, gql.CreateWebhookInput{ProjectId: w.project,
		Url: "https://hook.example.com/hook", EventTypes: []string{"apps.*"}, IdempotencyKey: "hook"})
	require.NoError(a.t, err)
	require.NotNil(a.t, hook.CreateWebhook.Secret)
	a.canaries["a webhook's secret"] = *hook.CreateWebhook.Secret
	a.credential(w)
	return w
}

// deliver takes every way in which a value reaches a node or an adapter.
func (a *aviary) deliver(w *world) {
	a.t.Helper()
	ctx := a.t.Context()
	forAdapter, err := w.adapter.IssueSecret(ctx, w.instance, adapter.SecretRequest{Purpose: "joining",
		IdempotencyKey: "adapter"})
	require.NoError(a.t, err)
	value, err := w.adapter.RedeemSecret(ctx, forAdapter)
	require.NoError(a.t, err)
	a.canaries["the adapter's secret"] = value

	forNode, err := w.adapter.IssueSecret(ctx, w.instance, adapter.SecretRequest{Purpose: "joining", MemberID: w.member,
		Again: true})
	require.NoError(a.t, err)
	a.canaries["the node's secret"] = a.taken(w, "secret", map[string]any{"name": "VALUE", "secretRef": forNode})
	pull, err := w.adapter.IssueSecret(ctx, w.instance, adapter.SecretRequest{Purpose: adapter.PurposeArtifactPull,
		ArtifactDigest: w.digest, MemberID: w.member})
	require.NoError(a.t, err)
	token := a.taken(w, "pull", map[string]any{"name": "VALUE", "secretRef": pull})
	a.canaries["a pull token"] = token
	require.Equal(a.t, http.StatusOK, w.pulls(a.t, token), "what reached the node opens the registry")
	require.Equal(a.t, http.StatusUnauthorized, w.pulls(a.t, ""))

	sealing := ""
	require.NoError(a.t, a.Admin.QueryRow(ctx, `SELECT n.sealing_key FROM compute_node n
		JOIN member m ON m.node_id = n.id WHERE m.id = $1`, w.member).Scan(&sealing))
	a.canaries["a sealed value"] = "canary-of-a-sealed-box"
	box, err := adapter.Seal(sealing, w.instance, []byte(a.canaries["a sealed value"]))
	require.NoError(a.t, err)
	require.Equal(a.t, a.canaries["a sealed value"], a.taken(w, "box", map[string]any{"name": "VALUE", "sealed": box}))
	next, err := gql.RotateRuntimeSecret(ctx, a.client(w.admin), forNode, 60, "")
	require.NoError(a.t, err)
	require.Equal(a.t, 2, next.RotateRuntimeSecret.Version)
	a.canaries["the node's next secret"] = a.taken(w, "rotated", map[string]any{"name": "VALUE", "secretRef": forNode})
	require.NotEqual(a.t, a.canaries["the node's secret"], a.canaries["the node's next secret"])
}

// taken runs a command on the node that puts what its variable holds into a file of the member, and reads that.
func (a *aviary) taken(w *world, name string, variable map[string]any) string {
	a.t.Helper()
	done := a.run(w, name, map[string]any{
		"command": []string{"/bin/sh", "-c", `printf %s "$VALUE" > "$GPUAAS_MEMBER_ROOT/tmp/taken-` + name + `"`},
		"env":     []any{variable},
	})
	require.Equal(a.t, gql.NodeTaskStateSucceeded, done.State, "%+v", done)
	found, err := filepath.Glob(filepath.Join(a.dir, "*", "*", "*", "tmp", "taken-"+name))
	require.NoError(a.t, err)
	if len(found) == 0 {
		found = a.search("taken-" + name)
	}
	require.Len(a.t, found, 1)
	content, err := os.ReadFile(found[0])
	require.NoError(a.t, err)
	require.NotEmpty(a.t, content)
	return string(content)
}

func (a *aviary) search(name string) (found []string) {
	_ = filepath.WalkDir(a.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// run requests a command and waits for its end.
func (a *aviary) run(w *world, key string, spec any) *gql.NodeTask {
	a.t.Helper()
	raw, err := json.Marshal(spec)
	require.NoError(a.t, err)
	asked, err := gql.RunNodeTask(a.t.Context(), w.adapter, gql.RunNodeTaskInput{MemberId: w.member,
		Kind: gql.NodeTaskKindRun, Spec: raw, IdempotencyKey: key})
	require.NoError(a.t, err)
	for {
		got, err := gql.GetNodeTask(a.t.Context(), w.adapter, asked.RunNodeTask.Id, 20)
		require.NoError(a.t, err)
		if got.NodeTask.EndedAt != nil {
			return &got.NodeTask
		}
	}
}

// fail takes the ways that go wrong, with the values in hand.
func (a *aviary) fail(w *world) {
	a.t.Helper()
	ctx := a.t.Context()
	value := a.canaries["the adapter's secret"]
	spent, err := w.adapter.IssueSecret(ctx, w.instance, adapter.SecretRequest{Purpose: "joining", MemberID: w.member})
	require.NoError(a.t, err)
	_, err = gql.RevokeRuntimeSecret(ctx, a.client(w.admin), spent, "leaked")
	require.NoError(a.t, err)
	done := a.run(w, "spent", map[string]any{"command": []string{"true"},
		"env": []any{map[string]any{"name": "VALUE", "secretRef": spent}}})
	require.Equal(a.t, gql.NodeTaskStateFailed, done.State)
	require.Contains(a.t, string(done.Result), "SECRET_SPENT")

	_, err = gql.IssueRuntimeSecret(ctx, w.adapter, gql.IssueRuntimeSecretInput{InstanceId: w.instance, Purpose: value,
		Audience: gql.SecretAudienceAdapter, IdempotencyKey: "x"})
	require.Error(a.t, err)
	_, err = gql.RedeemRuntimeSecret(ctx, w.adapter, value)
	require.Error(a.t, err)
	_, err = gql.RedeemRuntimeSecret(ctx, a.client(w.admin), spent)
	require.Error(a.t, err)
	for _, spec := range []string{`{"command":["x"],"env":[{"name":"A","sealed":"` + value + `"}]}`,
		`{"` + value + `":1}`,
		`{"command":["x"],"env":[{"name":"A","value":"x","secretRef":"` + value + `"}]}`} {
		_, err = gql.RunNodeTask(ctx, w.adapter, gql.RunNodeTaskInput{MemberId: w.member, Kind: gql.NodeTaskKindRun,
			Spec: json.RawMessage(spec), IdempotencyKey: "bad"})
		require.Error(a.t, err)
	}
	for _, credential := range []string{value, a.canaries["a pull token"],
		a.canaries["a service account's key"] + "x"} {
		require.NotEmpty(a.t, a.post(credential, `{ viewer { id } }`, nil).Errors)
	}
	a.post("", `{ project(id: "`+value+`") { id } }`, nil)
	a.post(w.admin, `query ($id: ID!) { project(id: $id) { id } nonsense }`, map[string]any{"id": value})
	answer, err := http.Get(a.url + "/auth/oidc/start")
	require.NoError(a.t, err)
	require.NoError(a.t, answer.Body.Close())
	live, err := w.adapter.IssueSecret(ctx, w.instance, adapter.SecretRequest{Purpose: "joining"})
	require.NoError(a.t, err)
	a.SQL(`UPDATE runtime_secret SET sealed = '\x7b7d' WHERE id = $1`, live)
	_, err = w.adapter.RedeemSecret(ctx, live)
	require.Equal(a.t, client.CodeInternal, client.CodeOf(err), "a damaged value is the server's own fault")
	require.Contains(a.t, a.server.String(), "does not belong to what it was opened for", "and in its log")
}

// look reads what others than its holder may read.
func (a *aviary) look(w *world) {
	a.t.Helper()
	for _, credential := range []string{w.admin, w.operator, w.viewer} {
		for _, document := range []string{
			`{ runtimeSecrets(instanceId: "` + w.instance +
				`", ended: true) { edges { node { id purpose spec version deliveries issuedBy { name } } } } }`,
			`{ nodeTasks(memberId: "` + w.member + `") { edges { node { id kind spec state result message } } } }`,
			`{ auditEntries(projectId: "` + w.project +
				`") { edges { node { action actor { name } before after reason } } } }`,
			`{ instance(id: "` + w.instance + `") { id name config members { edges { node { id status } } } } }`,
			`{ artifactSources { edges { node { id name location credentialUser credentialAt keys { publicKey } } } } }`,
			`{ auditEntries { edges { node { action before after reason } } } }`,
		} {
			a.third.WriteString(a.post(credential, document, nil).Raw)
		}
	}
	require.Contains(a.t, a.third.String(), "joining", "they see that there are secrets")
	require.Contains(a.t, a.third.String(), "robot", "and that there is a credential")
}

func (a *aviary) client(credential string) *client.Client {
	a.t.Helper()
	c, err := client.New(a.url, client.Options{Token: credential, MaxAttempts: 1})
	require.NoError(a.t, err)
	return c
}

// pulls asks the registry for the artifact with a token, and answers the status.
func (w *world) pulls(t *testing.T, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+w.registry+"/v2/"+w.repository+"/manifests/"+w.digest, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}
