package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// TestTheConsoleAddsDrainsAndRemovesAMember drives real headless Chromium through plans and changes of a running
// cluster, and back to where it was.
func TestTheConsoleAddsDrainsAndRemovesAMember(t *testing.T) {
	ctx, c := walking(t), automation(t)
	rent(t, ctx, c)
	bill(t, ctx)
	_, code, err := shared.LoginLink(ctx, shared.Demo.OperatorID)
	require.NoError(t, err)
	events := walkConsole(t, ctx, "hello-cluster", "--operator-code", code, "--publishes", stack.PublisherApp)
	for _, wanted := range []string{"running", "costs", "budget", "member-added", "member-drained", "member-removed",
		"stopped", "service-account", "explained", "policy", "webhook", "audit", "gap-raised", "platform-costs",
		"gap-closed", "onboarding"} {
		require.Contains(t, events, wanted)
	}
}

// walking returns a context with the bound of a walk through the console. Each step has a bound of its own (web/e2e).
// All together judge some fifty pages, which is work and not waiting: how long that takes is the machine's.
func walking(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// bill sets a price for what is rented, and opens the tenant's account without waiting for the billing role's first
// look: what an hour costs is shown from then on.
func bill(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := gql.SetPrice(ctx, shared.Operator, gql.SetPriceInput{Meter: "gpu_seconds", Per: "3600", Currency: "EUR",
		Measure: gql.PriceMeasureQuantity, Tiers: []gql.PriceTierInput{{Price: "2.40"}}, Reason: "end-to-end test"})
	require.NoError(t, err)
	_, err = gql.SetBillingAccount(ctx, shared.Operator, gql.SetBillingAccountInput{TenantId: shared.Demo.TenantID,
		Currency: "EUR", GraceSeconds: 3600, Reason: "end-to-end test"})
	require.NoError(t, err)
}

// walkConsole runs the walk through the console with an app, restarts the server where the walk requests it, and
// returns what happened, in order. Photographs are kept in the folder that E2E_SHOTS names.
func walkConsole(t *testing.T, ctx context.Context, app string, more ...string) []string {
	t.Helper()
	_, code, err := shared.LoginLink(ctx, shared.Demo.AdminID)
	require.NoError(t, err)
	return browses(t, ctx, app, append([]string{"e2e/main.mjs", "--base", shared.URL, "--login-code", code,
		"--app", app},
		more...)...)
}

// browses runs a script that drives a browser, and answers what happened, as walkConsole does.
func browses(t *testing.T, ctx context.Context, name string, arguments ...string) []string {
	t.Helper()
	return guides(t, ctx, name, map[string]func([]byte){"restart": func([]byte) {
		require.NoError(t, shared.Server.Restart(ctx))
		require.NoError(t, shared.AwaitReady(ctx))
	}}, arguments...)
}

// guides is browses for a script that waits at each of the events that the turns are for, until the turn is over.
func guides(t *testing.T, ctx context.Context, name string, turns map[string]func(line []byte),
	arguments ...string) []string {
	t.Helper()
	if shots := os.Getenv("E2E_SHOTS"); shots != "" {
		dir, err := filepath.Abs(filepath.Join(shots, name))
		require.NoError(t, err)
		arguments = append(arguments, "--shots", dir)
	}
	walk := exec.CommandContext(ctx, "node", arguments...)
	walk.Dir = "../../web"
	walk.Stderr = os.Stderr
	in, err := walk.StdinPipe()
	require.NoError(t, err)
	out, err := walk.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, walk.Start())
	var events []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var said struct{ Event string }
		t.Log(lines.Text())
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.Event != "" {
			events = append(events, said.Event)
		}
		if turn := turns[said.Event]; turn != nil {
			turn(lines.Bytes())
			_, err := in.Write([]byte("done\n"))
			require.NoError(t, err)
		}
	}
	require.NoError(t, walk.Wait())
	require.NotEmpty(t, events)
	require.Equal(t, "done", events[len(events)-1])
	return events
}
