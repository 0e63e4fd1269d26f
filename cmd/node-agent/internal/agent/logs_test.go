package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
)

// store reads the node's logs as an agent that was just started does.
func (r *rig) store() *logs.Store {
	r.t.Helper()
	key, err := seal.LoadOrCreate(r.dir)
	require.NoError(r.t, err)
	store, err := logs.New(logs.Options{StateDir: r.dir, Masks: masks.NewKeeper(r.dir, key), NodeBytes: 1 << 30,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(r.t, err)
	r.t.Cleanup(store.Close)
	return store
}

// lines follows a process after a line until what a line says is done.
func (r *rig) lines(process string, after int64, done func(logs.Line) bool) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), patience)
	defer stop()
	enough := errors.New("enough")
	query := logs.Query{Member: member, Process: process, After: map[string]int64{process: after}, Follow: true}
	require.ErrorIs(r.t, r.store().Read(ctx, query, func(line logs.Line) error {
		if done(line) {
			return enough
		}
		return nil
	}), enough)
}

func (r *rig) startProcess(id, name, script, policy string, env ...any) {
	r.t.Helper()
	started := r.do(newTask(id, "START_PROCESS", map[string]any{"name": name, "command": []string{"sh", "-c", script},
		"restart": map[string]any{"policy": policy, "backoffSeconds": 0.02}, "env": env}))
	require.Equal(r.t, "SUCCEEDED", started.State, started.message)
}

// The agent is killed while a process prints, and so is the process, again and again. Readers that go on where the one
// before was get each line once, with numbers without a gap; what the teardown leaves is the end of the same lines.
func TestEachLineIsReadOnceAcrossKillsOfAgentAndProcess(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		// Each life prints 150 lines, some slowly, and kills itself in the middle of the next one.
		r.startProcess("tsk_start", "d", `
i=$(cat $GPUAAS_MEMBER_ROOT/tmp/i 2>/dev/null || echo 0); last=$((i + 150))
while [ $i -lt $last ]; do i=$((i + 1)); echo $i > $GPUAAS_MEMBER_ROOT/tmp/i; echo line $i; done
sleep 0.05; printf 'torn %s' $i; kill -9 $$`, "always")
		at, want := int64(0), 1
		for range 3 {
			until := want + 400
			r.lines("d", at, func(line logs.Line) bool {
				require.Nil(t, line.Gap)
				require.Equal(t, at+1, line.Number)
				at = line.Number
				if n, whole := strings.CutPrefix(line.Text, "line "); whole {
					require.Equal(t, strconv.Itoa(want), n)
					want++
				} else {
					require.Equal(t, "torn "+strconv.Itoa(want-1), line.Text)
				}
				return want > until
			})
			r.kill()
			r.run()
		}
		down := r.do(newTask("tsk_down", "TEARDOWN", struct{}{}))
		require.Equal(t, "SUCCEEDED", down.State, down.message)
		result := resultOf[struct{ Logs []logs.Last }](t, down)
		require.Len(t, result.Logs, 1)
		last := result.Logs[0]
		require.True(t, last.Earlier)
		require.GreaterOrEqual(t, last.Lines[len(last.Lines)-1].Number, at)
		for i, line := range last.Lines {
			require.Equal(t, last.Lines[0].Number+int64(i), line.Number)
		}
		require.NoDirExists(t, r.dir+"/members/"+member)
		require.NoFileExists(t, r.dir+"/last-lines/"+member+".json")
	})
}

// Secrets that a task brought are masked in lines, in what an inspection shows, and in what a teardown leaves, by an
// agent that never saw them too.
func TestIssuedSecretsAreMaskedInWhatProcessesPrint(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		const inEnv, inFile = "s3cret-in-env", "s3cret-in-file"
		file := newTask("tsk_file", "WRITE_FILE", map[string]any{"path": "/run/key", "mode": "0644",
			"sealed": r.sealFor(instance, inFile)})
		require.Equal(t, "SUCCEEDED", r.do(file).State)
		r.kill()
		r.run()
		r.startProcess("tsk_start", "d", `echo "env $PASS" >&2; echo "base64 $(printf %s "user:$PASS" | base64)"
printf 'file '; cat $GPUAAS_MEMBER_ROOT/run/key; echo; echo end; exec sleep 7761`, "never",
			map[string]any{"name": "PASS", "sealed": r.sealFor(instance, inEnv)})
		r.kill()
		r.run()
		var shown []string
		r.lines("d", 0, func(line logs.Line) bool {
			shown = append(shown, fmt.Sprintf("%s: %s", line.Stream, line.Text))
			return len(shown) == 4
		})
		require.Contains(t, shown, "stderr: env [masked]")
		require.Contains(t, shown, "stdout: file [masked]")
		require.Regexp(t, `base64 .{0,8}\[masked\]`, strings.Join(shown, "\n"))
		inspected := resultOf[struct{ Process struct{ LogTail string } }](t,
			r.do(newTask("tsk_look", "INSPECT_PROCESS", map[string]any{"name": "d"})))
		require.Contains(t, inspected.Process.LogTail, "file [masked]\nend\n")
		down := r.do(newTask("tsk_down", "TEARDOWN", struct{}{}))
		require.Contains(t, string(down.result), `"text":"env [masked]"`)
		for id := range r.tasks {
			require.NotContains(t, string(r.seen(id).result)+r.seen(id).message, "s3cret", id)
		}
	})
}
