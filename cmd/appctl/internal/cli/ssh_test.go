package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// withLogins gives the rig's instance a server of its app's own with one member that serves it, and these actions. The
// returned order names the account and the certificate in the order in which they were requested.
func withLogins(r *rig, serving int, actions ...string) (order *atomic.Value) {
	order = &atomic.Value{}
	order.Store("")
	note := func(what string) { order.Store(order.Load().(string) + what) }
	list := []object{}
	for _, name := range actions {
		list = append(list, object{"name": name, "permissionKey": "scheduler.queue.submit", "risk": "WRITE",
			"inputSchema": object{}, "outputSchema": object{}})
	}
	r.Handle("instance", func(clienttest.Call) (any, error) {
		return object{"id": "ins_1", "name": "hpc", "projectId": "prj_1", "actions": list,
			"endpoints": []object{{"name": "entry", "title": "Entry", "componentKey": "gate", "protocol": "ssh",
				"permissionKey": "scheduler.queue.submit", "serving": serving}},
			"members": object{"edges": []object{}, "pageInfo": object{"hasNextPage": false}}}, nil
	})
	r.Handle("invokeAction", func(call clienttest.Call) (any, error) {
		input, _ := call.Args["input"].(map[string]any)
		if input["action"] != "ssh.account" {
			return nil, &client.Error{Code: client.CodeNotFound, Message: "no such action"}
		}
		note("account ")
		return object{"output": object{"user": "ada", "home": "/home/ada"}}, nil
	})
	r.Handle("issueSshCertificate", func(clienttest.Call) (any, error) {
		note("certificate ")
		return object{"certificate": "ssh-ed25519-cert-v01@openssh.com AAAA", "principals": []string{"entry.ins_1"},
			"expiresAt": "2030-01-01T00:00:00Z", "hostAuthorities": []string{"ssh-ed25519 AAAA"},
			"hostNames": []string{"ins_1"}}, nil
	})
	return order
}

func TestAnAppThatMakesAccountsSaysWhoLogsIn(t *testing.T) {
	dir := t.TempDir()
	stub := "#!/bin/sh\necho \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(stub), 0o700)) // #nosec G306 -- a program
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	r := newRig(t)
	order := withLogins(r, 1, "ssh.account")
	got := r.run(t.Context(), "", "ssh", "ins_1", "--", "sinfo")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "-l ada ")
	require.True(t, strings.HasSuffix(got.stdout, "-- ins_1 sinfo\n"), got.stdout)
	require.Equal(t, "account certificate ", order.Load(), "the account is there before anybody logs in")
	got = r.run(t.Context(), "", "ssh", "ins_1", "--user", "shared", "--", "sinfo")
	require.Contains(t, got.stdout, "-l shared ")

	order = withLogins(r, 1, "other.action")
	got = r.run(t.Context(), "", "ssh", "ins_1", "--", "sinfo")
	require.Contains(t, got.stdout, "-l root ", "an app without the action is logged in to as ever")
	require.Equal(t, "certificate ", order.Load())
}

func TestTheConfigurationOfSSHHasTheAccountThatTheAppSays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	order := withLogins(r, 1, "ssh.account")
	got := r.run(t.Context(), "", "ssh-config", "ins_1", "--reason", "copy results")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "Host ins_1\n    User ada\n")
	require.Equal(t, "account ", order.Load())
	got = r.run(t.Context(), "", "ssh-certificate", "--endpoint=entry", "ins_1")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, "account account certificate ", order.Load(), "each login makes the account ready")

	order = withLogins(r, 0, "ssh.account")
	got = r.run(t.Context(), "", "ssh-config", "ins_1", "--reason", "copy results")
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.stdout, "nobody can log in now")
	require.Empty(t, order.Load())
	r.Handle("invokeAction", func(clienttest.Call) (any, error) {
		return nil, &client.Error{Code: client.CodeInvalidArgument, Message: "the cluster has no login"}
	})
	got = r.run(t.Context(), "", "ssh-certificate", "--endpoint=entry", "ins_1")
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "the cluster has no login")
	require.Empty(t, order.Load(), "no certificate without an account")
}
