package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// notebookConfig has the notebook greet, and verify who opens it by the platform's published keys.
func notebookConfig(t *testing.T, ctx context.Context, greeting string) json.RawMessage {
	t.Helper()
	config, err := json.Marshal(map[string]any{"env": map[string]string{"GREETING": greeting,
		"PLATFORM_KEYS": platformKeys(t, ctx)}})
	require.NoError(t, err)
	return config
}

// platformKeys are the keys that the platform publishes.
func platformKeys(t *testing.T, ctx context.Context) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.URL+"/.well-known/jwks.json", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	keys, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return strings.TrimSpace(string(keys))
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

// worksInAMember runs a command in a replica and reads what it prints, as a person with the command line. The
// automation account, whose keys do not hold it, is refused.
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

// logsIn logs in to a replica with this machine's own ssh, copies a file there and back with its scp, and is cut when
// the right ends.
func (k *containersUnderTest) logsIn() {
	k.t.Helper()
	_, code, err := shared.LoginLink(k.ctx, shared.Demo.AdminID)
	require.NoError(k.t, err)
	anybody, err := client.New(shared.URL, client.Options{})
	require.NoError(k.t, err)
	dana, err := anybody.Login(k.ctx, code)
	require.NoError(k.t, err)
	tool := func(args ...string) string {
		k.t.Helper()
		said, complaint, exit := appctlAs(k.t, k.ctx, dana.Token, args...)
		require.Zero(k.t, exit, "%v: %s", args, complaint)
		return strings.TrimSpace(said)
	}
	account := tool("admin", "service-account", "create", "logs-in", "-q", "--permission", "apps.member.exec",
		"--permission",
		"apps.instance.read", "--permission", "apps.node.read", "--permission", "apps.catalog.read",
		"--permission", "operation.read", "--permission", "allocation.read", "--permission", "manifest.read")
	key := tool("admin", "key", "create", account, "-q")
	said, complaint, exit := appctlAs(k.t, k.ctx, key, "ssh", "notebooks/replica/0", "--reason",
		"end-to-end test", "--", "echo in $GPUAAS_MEMBER_ID; exit 3")
	require.Equal(k.t, 1, exit, complaint)
	require.Contains(k.t, complaint, "exit code 3")
	require.Contains(k.t, memberIDs(k.t, k.ctx, k.c, k.instance), strings.TrimSpace(strings.TrimPrefix(said, "in ")))
	_, complaint, exit = appctlAs(k.t, k.ctx, shared.Demo.ServiceAccountKey, "ssh", "notebooks/replica/0", "--reason",
		"test")
	require.Equal(k.t, 4, exit)
	require.Contains(k.t, complaint, "apps.member.exec")
	k.cutOff(key, func() { tool("admin", "service-account", "delete", account, "--reason", "end-to-end test") })
}

// cutOff works by the configuration that appctl prints, until the account that it works by is deleted.
func (k *containersUnderTest) cutOff(key string, deletes func()) {
	k.t.Helper()
	dir := k.t.TempDir()
	stock := func(program string, args ...string) *exec.Cmd {
		command := exec.CommandContext(k.ctx, program, append([]string{"-F", filepath.Join(dir, "config")}, args...)...)
		command.Env = append(os.Environ(), "APPCTL_SERVER="+shared.URL, "APPCTL_TOKEN="+key, "XDG_CONFIG_HOME="+dir,
			"APPCTL_PROJECT="+shared.Demo.ProjectID)
		return command
	}
	print := exec.CommandContext(k.ctx, "../../bin/appctl", "ssh-config", "notebooks", "--reason", "end-to-end test")
	print.Env = stock("ssh").Env
	config, err := print.Output()
	require.NoError(k.t, err)
	require.NoError(k.t, os.WriteFile(filepath.Join(dir, "config"), config, 0o600))
	text := strings.Repeat("a line\n", 10_000)
	require.NoError(k.t, os.WriteFile(filepath.Join(dir, "up"), []byte(text), 0o600))
	const host = "notebooks.replica.0"
	for _, args := range [][]string{{filepath.Join(dir, "up"), host + ":/tmp/copied"},
		{host + ":/tmp/copied", filepath.Join(dir, "down")}} {
		printed, err := stock("scp", args...).CombinedOutput()
		require.NoError(k.t, err, "%s\n%s", printed, config)
	}
	back, err := os.ReadFile(filepath.Join(dir, "down"))
	require.NoError(k.t, err)
	require.Equal(k.t, text, string(back))

	session := stock("ssh", host, "echo on; exec sleep 600")
	out, err := session.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, session.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(k.t, err)
	require.Equal(k.t, "on\n", line)
	deletes()
	began := time.Now()
	require.Error(k.t, session.Wait())
	require.Less(k.t, time.Since(began), 5*time.Second, "a session ends with the right")
	printed, err := stock("ssh", host, "true").CombinedOutput()
	require.Error(k.t, err)
	require.Contains(k.t, string(printed), "UNAUTHENTICATED")
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
