package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// shared is the installation that all tests of the package use; each test launches instances of
// its own.
var shared *stack.Stack

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse() // the installation begins with what they say
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := os.Stat(filepath.Join(bin, "app-platform")); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the programs are not built; run make build first, or make test for everything")
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if outside, err = startPublishers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if hooks, err = startReceiver(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if *own {
		return m.Run()
	}
	shared, err = stack.Up(ctx, stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: bin, Listen: "127.0.0.1:0", Nodes: 5, NodeMemoryMiB: 8192,
		Throwaway:  true,
		Apps:       installed(),
		Registries: []string{outside.host}, Webhooks: []string{hooks.host}, Out: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: bring the installation up:", err)
		printLogs(filepath.Join(dir, "data", "logs"))
		return 1
	}
	defer func() { _ = shared.Close() }()
	code := m.Run()
	if code != 0 {
		printLogs(shared.LogDir())
	}
	return code
}

// printLogs shows what every program logged last that is not ordinary progress: what a failed run leaves behind is
// deleted with its folder, and a record of a run keeps only so much.
func printLogs(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		content, _ := os.ReadFile(file)
		var shown strings.Builder
		for line := range strings.Lines(string(content)) {
			if !strings.Contains(line, `"level":"INFO"`) {
				shown.WriteString(line)
			}
		}
		fmt.Fprintf(os.Stderr, "---- %s\n%s\n", filepath.Base(file), shown.String()[max(0, shown.Len()-2_000):])
	}
}

// bounded is a context for one test.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// automation is a client with the service account's key.
func automation(t *testing.T) *client.Client {
	t.Helper()
	c, err := shared.Automation()
	require.NoError(t, err)
	return c
}

// rent takes one GPU for a test and gives it back at its end, with proof.
func rent(t *testing.T, ctx context.Context, c *client.Client) string {
	t.Helper()
	got, err := gql.RequestAllocation(ctx, c, gql.RequestAllocationInput{
		ProjectId: shared.Demo.ProjectID, Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(t, err)
	id := got.RequestAllocation.Allocations[0].Id
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		release, err := gql.ReleaseAllocation(ctx, c, gql.ReleaseAllocationInput{AllocationId: id,
			IdempotencyKey: client.NewKey()})
		require.NoError(t, err)
		succeeds(t, ctx, c, release.ReleaseAllocation.Operation.Id)
	})
	return id
}

// succeeds waits for the operation's end and requires success.
func succeeds(t *testing.T, ctx context.Context, c *client.Client, operation string) *gql.OperationDetail {
	t.Helper()
	ended, err := c.WaitOperation(ctx, operation, nil)
	require.NoError(t, err)
	require.Equal(t, gql.OperationStateSucceeded, ended.State, "%s: %+v", ended.Message, ended.Error)
	return ended
}
