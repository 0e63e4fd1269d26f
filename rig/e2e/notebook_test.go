package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// notebookConfig has the notebook greet, and verify who opens it by the platform's published keys.
func notebookConfig(t *testing.T, ctx context.Context, greeting string) json.RawMessage {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.URL+"/.well-known/jwks.json", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	keys, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	config, err := json.Marshal(map[string]any{"env": map[string]string{"GREETING": greeting,
		"PLATFORM_KEYS": strings.TrimSpace(string(keys))}})
	require.NoError(t, err)
	return config
}

// opensInABrowser opens the notebook from the console in one click, and runs a cell in it.
func (k *containersUnderTest) opensInABrowser() {
	k.t.Helper()
	_, code, err := shared.LoginLink(k.ctx, shared.Demo.AdminID)
	require.NoError(k.t, err)
	events := browses(k.t, k.ctx, notebook, "e2e/notebook.mjs", "--base", shared.URL, "--login-code", code,
		"--instance", k.instance, "--caller", "Dana Admin")
	require.Subset(k.t, events, []string{"opened", "ran", "apart"})
}

// worksInAMember runs a command in a replica and reads what it prints, as a person with the command line. The automation
// account, whose keys do not hold it, is refused.
func (k *containersUnderTest) worksInAMember() {
	k.t.Helper()
	_, code, err := shared.LoginLink(k.ctx, shared.Demo.AdminID)
	require.NoError(k.t, err)
	anybody, err := client.New(shared.URL, client.Options{})
	require.NoError(k.t, err)
	dana, err := anybody.Login(k.ctx, code)
	require.NoError(k.t, err)
	command := []string{"exec", "notebooks/replica/0", "--reason", "end-to-end test", "--", "sh", "-c",
		"echo in $GPUAAS_MEMBER_ID; echo oops >&2; exit 3"}
	said, complaint, exit := appctlAs(k.t, k.ctx, dana.Token, command...)
	require.Equal(k.t, 1, exit, complaint)
	require.Contains(k.t, memberIDs(k.t, k.ctx, k.c, k.instance), strings.TrimSpace(strings.TrimPrefix(said, "in ")))
	require.Contains(k.t, complaint, "oops\n")
	require.Contains(k.t, complaint, "exit code 3")
	_, complaint, exit = appctlAs(k.t, k.ctx, shared.Demo.ServiceAccountKey, command...)
	require.Equal(k.t, 4, exit)
	require.Contains(k.t, complaint, "apps.member.exec")
	_, complaint, exit = appctlAs(k.t, k.ctx, dana.Token, "logs", "notebooks/replica/0", "--tail", "5")
	require.Zero(k.t, exit, complaint)
}

// takesNotes has a notebook that runs, and a key of an account that may open it.
func (w *walker) takesNotes() {
	w.t.Helper()
	_, err := gql.GrantEntitlement(w.ctx, shared.Operator, w.project, notebook, nil, nil, "")
	require.NoError(w.t, err)
	w.says("dana", "appctl allocations request --shape gpu-slice --gpus 1 --name notes-slot")
	w.says("dana", "appctl launch "+notebook+" --name notes --allocation notes-slot --wait -q")
	account := w.says("dana", "appctl admin service-account create reader --permission apps.queue.submit -q")
	w.stands["gpu_sa_…"] = w.says("dana", "appctl admin key create "+account+" -q")
	w.stands["http://notebook--01m84….apps.localhost:8080"] = w.says("dana",
		`appctl endpoints notes -o json | grep -o 'http://notebook--[^"]*'`)
	_, port, err := net.SplitHostPort(freeAddress(w.t))
	require.NoError(w.t, err)
	w.stands["notes notebook 8888"], w.stands["127.0.0.1:8888"] = "notes notebook "+port, "127.0.0.1:"+port
}
