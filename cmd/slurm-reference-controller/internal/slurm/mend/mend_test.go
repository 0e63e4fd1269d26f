package mend_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/sdk/adapter/automation"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

const (
	schemaFiles = "../../../../../graph/schema/*.graphql"
	ownKey      = "gpu_key_adapter"
	unchosen    = "ins_unchosen"
)

// platform is a stand-in with one chosen account for every instance but one.
func platform(t *testing.T) (*clienttest.Server, *automation.Account) {
	t.Helper()
	server := clienttest.New(t, schemaFiles)
	server.Handle("issueOperatorToken", func(call clienttest.Call) (any, error) {
		require.Equal(t, "Bearer "+ownKey, call.Header.Get("Authorization"), "the adapter's own account requests it")
		if call.Args["instanceId"] == unchosen {
			return nil, &clienttest.Fault{Code: "FAILED_PRECONDITION", Message: "no service account is chosen"}
		}
		return clienttest.Object{"token": "token of " + call.Args["instanceId"].(string), "serviceAccountId": "sa_1",
			"expiresAt": time.Now().Add(time.Hour).Format(time.RFC3339)}, nil
	})
	server.Handle("member", func(call clienttest.Call) (any, error) {
		status := map[any]string{"mem_failed": "FAILED"}[call.Args["id"]]
		if status == "" {
			status = "ACTIVE"
		}
		return clienttest.Object{"id": call.Args["id"], "status": status}, nil
	})
	server.Handle("replaceMember", func(clienttest.Call) (any, error) {
		return clienttest.Object{"operation": clienttest.Object{"id": "op_1"}}, nil
	})
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(ownKey), 0o600))
	account, err := automation.Open(server.URL, file)
	require.NoError(t, err)
	return server, account
}

func TestAWorkerThatSlurmHasGivenUpIsReplacedOnce(t *testing.T) {
	t.Parallel()
	server, account := platform(t)
	m := mend.New()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, account, slog.New(slog.DiscardHandler)) }()
	for _, lost := range []mend.Lost{
		{InstanceID: "ins_1", MemberID: "mem_1", Says: "w0 is down* (Not responding)"},
		{InstanceID: "ins_1", MemberID: "mem_1", Says: "w0 is down* (Not responding)"},
		{InstanceID: "ins_1", MemberID: "mem_failed"}, // the platform's own repair, or a person, has it in hand
		{InstanceID: unchosen, MemberID: "mem_2"},
		{InstanceID: unchosen, MemberID: "mem_2"},
		{InstanceID: "ins_1", MemberID: "mem_3"},
	} {
		m.Tell(lost)
	}
	require.Eventually(t, func() bool { return len(server.CallsOf("replaceMember")) == 2 }, 10*time.Second,
		time.Millisecond)
	stop()
	require.NoError(t, <-ended)

	first := server.CallsOf("replaceMember")[0]
	require.Equal(t, "Bearer token of ins_1", first.Header.Get("Authorization"),
		"it acts as the account that was chosen")
	require.Equal(t, "mem_1", first.Input()["memberId"])
	require.Equal(t, "Slurm has given the worker up: w0 is down* (Not responding)", first.Input()["reason"])
	require.Equal(t, "slurm-lost-mem_1", first.Input()["idempotencyKey"], "it is one request, whoever starts again")
	require.Equal(t, "mem_3", server.CallsOf("replaceMember")[1].Input()["memberId"])
	require.Len(t, server.CallsOf("issueOperatorToken"), 2, "an instance without an account is left alone for a while")
}
