package contract_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/share"
)

// A project that is attached to a shared control plane reaches the app over the contract: the adapter learns the
// requesting project, and its token is the instance's, whatever project that is.
func TestAnActionOfAnAttachedProjectReachesTheAdapter(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	var asked adapter.ActionRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") == "" ||
			json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(adapter.ActionResult{Output: json.RawMessage(`{"jobs":3}`)})
	}))
	defer server.Close()

	tenant := kit.Tenant()
	home, guest := kit.Project(tenant), kit.Project(tenant)
	app := kit.App("apps")
	document := platformtest.Document(app, "1.0.0", kit.Adapter(server.URL, nil), kit.Artifact(lifecycle.StageActive))
	document["requires"] = map[string]any{"identities": "posix"}
	stored := kit.Manifest(lifecycle.StageActive, document)
	node, _ := kit.Node(2)
	made := kit.Instance(home, stored, lifecycle.InstanceRunning, kit.Allocation(home, node))
	kit.SQL(`UPDATE instance SET control_plane_scope = 'TENANT' WHERE id = $1`, made.ID)
	shares := &share.Service{DB: kit.DB}
	offered, err := shares.Offer(kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, home))),
		share.OfferInput{InstanceID: made.ID, ProjectID: guest.ID, Reason: "for all", IdempotencyKey: "k"})
	require.NoError(t, err)
	_, err = shares.Accept(kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, guest))),
		share.Input{ShareID: offered.ID})
	require.NoError(t, err)

	account, robot := kit.ServiceAccount(guest, authz.AppsQueueRead)
	verbs := &instance.Service{DB: kit.DB, Calls: calls(t)}
	out, err := verbs.InvokeAction(kit.With(robot),
		instance.ActionInput{InstanceID: made.ID, Action: "queue.read", ProjectID: guest.ID, IdempotencyKey: "a"})
	require.NoError(t, err)
	require.JSONEq(t, `{"jobs":3}`, string(out.Output))
	require.Equal(t, adapter.Requester{ID: string(account.ID), Kind: "service_account", ProjectID: string(guest.ID),
		Posix: &adapter.PosixIdentity{Name: account.Name, UID: 1000, GID: 1000}}, asked.Requester)
	require.Equal(t, []string{string(made.ID), string(home.ID), "tenant_dedicated", "tenant"},
		[]string{asked.Instance.ID, asked.Instance.ProjectID, asked.Instance.OperatingMode,
			asked.Instance.ControlPlaneScope})
	require.NotEmpty(t, asked.Instance.Artifacts, "what the manifest pins is told")
	require.Len(t, asked.Members, 1)
	require.Equal(t, node.Name, asked.Members[0].Node.Name)
	require.NotEmpty(t, asked.Platform.Token)

	claims := claimsOf(t, asked.Platform.Token)
	require.ElementsMatch(t, []any{"task.run", "task.read", "secret.redeem"}, claims["keys"],
		"of contract 1.1, and not narrowed yet")
	require.Equal(t, string(account.ID), claims["act"].(map[string]any)["sub"], "the token names who asked")
	kit.SQL(`UPDATE adapter SET narrow_calls = true`)
	_, err = verbs.InvokeAction(kit.With(robot), instance.ActionInput{InstanceID: made.ID, Action: "queue.read",
		ProjectID: guest.ID, IdempotencyKey: "b"})
	require.NoError(t, err)
	require.ElementsMatch(t, []any{"task.inspect", "task.read"}, claimsOf(t, asked.Platform.Token)["keys"],
		"a reading action only looks")
}

// claimsOf reads what a token says, unverified.
func claimsOf(t *testing.T, text string) (claims map[string]any) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &claims))
	return claims
}
