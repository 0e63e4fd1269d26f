package volume_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

const (
	makerPart = "maker-under-test"
	perMaker  = 200
)

// TestMain lets the test program be an agent that makes volumes until it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == makerPart {
		os.Exit(makeForEver(os.Args[2]))
	}
	os.Exit(m.Run())
}

func makeForEver(raw string) int {
	var given []string
	if err := json.Unmarshal([]byte(raw), &given); err != nil {
		return 2
	}
	storages, err := volume.Parse(given)
	if err != nil {
		return 2
	}
	store := volume.Open(context.Background(), storages, slog.New(slog.DiscardHandler))
	for i := range perMaker {
		for _, one := range []volume.Volume{files(fmt.Sprint("vol_m", i)), disk(fmt.Sprint("vol_m", i), 16*mib)} {
			if err := store.Make(context.Background(), []volume.Volume{one}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		fmt.Println(i)
	}
	return 0
}

// An agent is killed while it makes volumes, again and again: what has a volume's name is whole.
func TestAKilledAgentLeavesWholeVolumesAndNoDevice(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	given, err := json.Marshal([]string{"files=shared:" + g.shared, "disk=local:" + g.local})
	require.NoError(t, err)
	for round := range 6 {
		maker := exec.Command("/proc/self/exe", makerPart, string(given))
		out, err := maker.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, maker.Start())
		made := bufio.NewScanner(out)
		for range round + 1 { // and then it makes the next
			require.True(t, made.Scan())
		}
		require.NoError(t, maker.Process.Kill())
		_ = maker.Wait()
	}
	images, err := filepath.Glob(filepath.Join(g.local, "vol_m*.img"))
	require.NoError(t, err)
	require.NotEmpty(t, images)
	for _, image := range images {
		v := disk(strings.TrimSuffix(filepath.Base(image), ".img"), 16*mib)
		g.detached(v.ID)
		tree := g.mounted(v)
		require.NoError(t, in(t, tree, 0, "f", unix.O_CREAT|unix.O_WRONLY).Close())
		require.NoError(t, tree.Close())
		g.detached(v.ID)
	}
	require.Eventually(t, func() bool { // a program that the killed agent had started goes on to its end
		if g.Delete(t.Context(), disk("vol_none", 0)) != nil {
			return false
		}
		half, _ := filepath.Glob(filepath.Join(g.local, ".new-*"))
		return len(half) == 0
	}, patience, 10*time.Millisecond, "what was half made is swept")
}
