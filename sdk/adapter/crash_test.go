package adapter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// childEnv holds the configuration of a controller run by this test binary.
const childEnv = "ADAPTER_TEST_CHILD"

// runChild is the main of that controller: it prints its address and serves until it is killed.
func runChild() int {
	var config struct{ Dir, Issuer, Name string }
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &config); err != nil {
		return 2
	}
	kit, err := New(Config{
		Name: config.Name, Apps: []App{demoApp()}, StateDir: config.Dir,
		Issuer: config.Issuer, Keys: NewKeySet(config.Issuer+"/.well-known/jwks.json", nil),
	})
	if err == nil {
		err = kit.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 2
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 2
	}
	fmt.Println("http://" + listener.Addr().String())
	_ = http.Serve(listener, kit.Handler())
	return 0
}

// child starts the controller as a process of its own and returns its address.
func child(t *testing.T, l *lab, dir string) (base string, kill func()) {
	t.Helper()
	config, err := json.Marshal(map[string]string{"Dir": dir, "Issuer": l.server.URL, "Name": l.name})
	require.NoError(t, err)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childEnv+"="+string(config))
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	kill = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(line, "http://"), line)
	return strings.TrimSpace(line), kill
}

func TestKilledControllerResumesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	base, kill := child(t, l, dir)
	l.hold("second")
	d := l.dispatchOf("op_1", InstanceCreate)
	l.dispatch(base, d, http.StatusAccepted)
	l.dispatch(base, l.dispatchOf("op_0", InstanceDecommission), http.StatusAccepted)
	l.ends(base, "op_0", StateSucceeded)
	require.Eventually(t, func() bool {
		return strings.Contains(strings.Join(l.steps(), " "), "second")
	}, patience, tick)
	cursor := l.changes(base, "", 0).Cursor
	kill()

	base, _ = child(t, l, dir)
	l.dispatch(base, d, http.StatusAccepted)
	l.ends(base, "op_0", StateSucceeded)
	l.release("second")
	l.ends(base, "op_1", StateSucceeded)
	made := map[string]int{}
	for _, step := range l.steps() {
		made[step]++
	}
	require.Equal(t, map[string]int{"first": 2, "second": 2, "third": 2, "committed": 1, "teardown": 2}, made)

	// The resumed steps sent what the killed process had rendered, sealed or random as it may be.
	l.mu.Lock()
	for key, task := range l.tasks {
		if strings.HasSuffix(key, ".second") && task.asked > 1 {
			require.Contains(t, task.Spec, "random-")
		}
	}
	l.mu.Unlock()

	// The cursor of the killed process still works, and sees what happened since.
	page := l.changes(base, cursor, 0)
	require.NotEmpty(t, page.Operations)
	require.Equal(t, StateSucceeded, page.Operations[len(page.Operations)-1].State)
}

func TestCancelOutlivesTheControllerThatTookIt(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	base, kill := child(t, l, dir)
	l.hold("second")
	l.hold("undo")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		// The undo hangs, so the answer never comes; the process is killed meanwhile.
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+CancelPath("op_1"),
			strings.NewReader(`{"attempt":1}`))
		if err == nil && l.signer.SignRequest(req, l.name, []byte(`{"attempt":1}`)) == nil {
			req.Header.Set("Content-Type", "application/json")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}()
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(l.steps(), " "), "undo") }, patience, tick)
	kill()

	base, _ = child(t, l, dir)
	l.release("undo")
	l.ends(base, "op_1", StateCanceled)
	require.NotContains(t, l.steps(), "third")
}

func TestTornLastRecordIsCutOff(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	base, kill := child(t, l, dir)
	l.hold("second")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })
	kill()
	file, err := os.OpenFile(dir+"/operations/op_1.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"at":"2026-01-01T00:00:00Z","status":{"operationId":"op_1","sta`)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NoError(t, os.WriteFile(dir+"/operations/op_2.jsonl", []byte(`{"dispatch":{"operat`), 0o600))

	base, _ = child(t, l, dir)
	l.release("second")
	l.ends(base, "op_1", StateSucceeded)
	code, _ := l.call(base, http.MethodGet, OperationPath("op_2"), nil)
	require.Equal(t, http.StatusNotFound, code)
}

func TestJournalForgetsTheTokenAndTheStepsOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	base, _ := startKit(t, l, l.config(dir, demoApp()))
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)
	raw, err := os.ReadFile(dir + "/operations/op_1.jsonl")
	require.NoError(t, err)
	require.NotContains(t, string(raw), "tok-1")
	require.NotContains(t, string(raw), "random-")
	info, err := os.Stat(dir + "/operations/op_1.jsonl")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
