package agent_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// sealFor seals as an adapter does, with the public key that the node enrolled.
func (r *rig) sealFor(instanceID, value string) string {
	r.t.Helper()
	public, err := base64.StdEncoding.DecodeString(r.enrolled.SealingKey)
	require.NoError(r.t, err)
	plain, err := json.Marshal(map[string]any{"instanceId": instanceID, "value": []byte(value)})
	require.NoError(r.t, err)
	sealed, err := box.SealAnonymous(nil, plain, (*[32]byte)(public), rand.Reader)
	require.NoError(r.t, err)
	return base64.StdEncoding.EncodeToString(sealed)
}

func TestSealedValuesReachTheTaskAndNothingElse(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		const inEnv, inFile, inProcess = "s3cret-in-env", "s3cret-in-file", "s3cret-in-process"
		run := newTask("tsk_env", "RUN", map[string]any{
			"command": []string{"sh", "-c", `test "$PASS" = s3cret""-in-env && echo right`},
			"env":     []any{map[string]any{"name": "PASS", "sealed": r.sealFor(instance, inEnv)}},
		})
		require.Equal(t, "right\n", resultOf[runResult](t, r.do(run)).Stdout)
		file := newTask("tsk_file", "WRITE_FILE", map[string]any{"path": "/run/key", "mode": "0600",
			"sealed": r.sealFor(instance, inFile)})
		require.Equal(t, "SUCCEEDED", r.do(file).State)
		require.Equal(t, "14 600\n", resultOf[runResult](t,
			r.do(shell("tsk_size", "stat -c '%s %a' "+root+"/run/key"))).Stdout)
		process := newTask("tsk_start", "START_PROCESS", map[string]any{
			"name": "holder", "command": []string{"sleep", "7711"}, "restart": map[string]any{"policy": "always"},
			"env": []any{map[string]any{"name": "PASS", "sealed": r.sealFor(instance, inProcess)}},
		})
		require.Equal(t, "SUCCEEDED", r.do(process).State)
		r.kill()
		r.run()
		r.do(shell("tsk_after", "true"))
		require.NotContains(t, r.log.text(), "s3cret")
		for name, content := range r.stateFiles() {
			if !strings.HasSuffix(name, "/run/key") { // without namespaces the member's own file lies here
				require.NotContains(t, content, "s3cret", name)
			}
		}
		for id := range r.tasks {
			require.NotContains(t, string(r.seen(id).result)+r.seen(id).message, "s3cret", id)
		}
	})
}

// stateFiles reads everything below the state directory.
func (r *rig) stateFiles() map[string]string {
	found := map[string]string{}
	require.NoError(r.t, filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			require.NoError(r.t, err)
			found[path] = string(raw)
		}
		return nil
	}))
	require.NotEmpty(r.t, found)
	return found
}

func TestSealedValueOfAnotherInstanceIsRefused(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		for name, sealed := range map[string]string{"other": r.sealFor("ins_other", "x"), "none": r.sealFor("", "x"),
			"noise": "AAAA", "text": "%%"} {
			task := newTask("tsk_"+name, "WRITE_FILE", map[string]any{"path": "/etc/key", "sealed": sealed})
			done := r.do(task)
			require.Equal(t, "FAILED", done.State, name)
			require.Equal(t, "SEALED_INVALID", resultOf[struct{ Code string }](t, done).Code, name)
		}
	})
}

func TestCredentialIsRotatedAndTheEarlierOneForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, memberinit.ModeProcess)
	r.kill()
	r.mu.Lock()
	r.life = time.Hour
	r.mu.Unlock()
	r.aged()
	r.run()
	r.eventually(func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.minted == 2 && r.fresh == "" && r.valid["gpu_nod_2"]
	}, "the fresh credential is used")
	r.eventually(func() bool {
		raw, err := os.ReadFile(filepath.Join(r.dir, "credential.json"))
		return err == nil && strings.Contains(string(raw), "gpu_nod_2") && !strings.Contains(string(raw), "gpu_nod_1")
	}, "only the fresh one is kept")
	require.Equal(t, "SUCCEEDED", r.do(shell("tsk_a", "true")).State)
	require.NotContains(t, r.log.text(), "gpu_nod_")
}

// aged makes the credential on the disk look older than half of its life.
func (r *rig) aged() {
	r.changeCredential(func(state map[string]any) {
		current := state["current"].(map[string]any)
		current["issuedAt"] = time.Now().Add(-2 * time.Hour)
	})
}

func (r *rig) changeCredential(change func(state map[string]any)) {
	r.t.Helper()
	name := filepath.Join(r.dir, "credential.json")
	raw, err := os.ReadFile(name)
	require.NoError(r.t, err)
	var state map[string]any
	require.NoError(r.t, json.Unmarshal(raw, &state))
	change(state)
	raw, err = json.Marshal(state)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(name, raw, 0o600))
}

func TestCrashBetweenRotationAndFirstUseLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the platform knows the fresh one": true,
		"the fresh one never works": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, memberinit.ModeProcess)
			r.kill()
			r.changeCredential(func(state map[string]any) {
				state["next"] = map[string]any{"token": "gpu_nod_fresh", "issuedAt": time.Now(),
					"expiresAt": time.Now().Add(time.Hour)}
			})
			r.mu.Lock()
			if known {
				r.fresh = "gpu_nod_fresh"
			}
			before := r.beats
			r.mu.Unlock()
			r.run()
			r.eventually(func() bool { return r.count(&r.beats) > before }, "the agent is accepted")
			require.Equal(t, "SUCCEEDED", r.do(shell("tsk_a", "true")).State)
			r.mu.Lock()
			defer r.mu.Unlock()
			require.Equal(t, known, r.valid["gpu_nod_fresh"])
		})
	}
}

func TestNodeIsEnrolledAgainByANewToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, memberinit.ModeProcess)
	r.kill()
	r.mu.Lock()
	r.valid, r.enrolment = map[string]bool{}, "gpu_enr_second"
	r.mu.Unlock()
	r.options.EnrolToken = "gpu_enr_second"
	r.run()
	require.Equal(t, "SUCCEEDED", r.do(shell("tsk_a", "true")).State)
}

func TestSecondAgentOnTheSameStateIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, memberinit.ModeProcess)
	first := r.process
	r.run()
	second := r.process
	r.process = first
	require.Error(t, second.Wait())
	require.Contains(t, r.log.text(), "another agent uses")
}

func TestTeardownLeavesNothingWhateverTheMemberDid(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.do(shell("tsk_a", `(setsid env -i /bin/sh -c 'trap "" TERM HUP; while :; do sleep 7721; done' >/dev/null 2>&1 &)
			nohup setsid sleep 7722 >/dev/null 2>&1 & mkdir -p `+
			root+`/var/deep/er; echo x > `+root+`/var/deep/er/file`))
		r.do(newTask("tsk_p", "START_PROCESS", map[string]any{"name": "p", "command": []string{"sleep", "7723"},
			"restart": map[string]any{"policy": "always"}}))
		r.give(shell("tsk_running", "echo begun; sleep 7724"))
		r.eventually(func() bool { return r.seen("tsk_running").output["STDOUT"] == "begun\n" }, "a command runs")
		before := resultOf[struct{ Residue sandbox.Residue }](t, r.do(newTask("tsk_r", "RESIDUE", struct{}{}))).Residue
		require.True(t, before.Sandbox)
		require.Contains(t, strings.Join(before.Names, "\n"), "var/deep/er/file")
		require.GreaterOrEqual(t, len(before.Processes), 5)

		done := r.do(newTask("tsk_down", "TEARDOWN", struct{}{}))
		require.Equal(t, "SUCCEEDED", done.State, "%s %s", done.message, done.result)
		require.True(t, resultOf[struct{ Residue sandbox.Residue }](t, done).Residue.Empty())
		require.NotEqual(t, "SUCCEEDED", r.ended("tsk_running").State)
		after := r.do(newTask("tsk_r2", "RESIDUE", struct{}{}))
		require.JSONEq(t,
			`{"residue":{"sandbox":false,"processes":[],"mounts":[],"files":0,"bytes":0,"names":[],"cgroups":[],"network":[]}}`, string(after.result))
		for _, process := range before.Processes {
			stat, err := procfs.ReadStat(process.PID)
			require.True(t, err != nil || stat.Dead(), "process %v survived", process)
		}
		again := r.do(newTask("tsk_down2", "TEARDOWN", struct{}{}))
		require.Equal(t, "SUCCEEDED", again.State)
	})
}

func TestProcessTasks(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		type process struct{ Process wire.Process }
		spec := map[string]any{"name": "web", "command": []string{"sleep", "7731"},
			"restart": map[string]any{"policy": "on_failure", "maxRestarts": 3, "backoffSeconds": 1}}
		first := resultOf[process](t, r.do(newTask("tsk_1", "START_PROCESS", spec))).Process
		require.Equal(t, "running", first.State)
		require.Equal(t, first.PID, resultOf[process](t, r.do(newTask("tsk_2", "START_PROCESS", spec))).Process.PID)
		spec["command"] = []string{"sleep", "7732"}
		differs := r.do(newTask("tsk_3", "START_PROCESS", spec))
		require.Equal(t, "FAILED", differs.State)
		require.Equal(t, "PROCESS_SPEC_DIFFERS", resultOf[struct{ Code string }](t, differs).Code)
		r.kill()
		r.run()
		require.Equal(t, first.PID, resultOf[process](t,
			r.do(newTask("tsk_4", "INSPECT_PROCESS", map[string]any{"name": "web"}))).Process.PID)
		require.Equal(t, "exited", resultOf[process](t,
			r.do(newTask("tsk_5", "STOP_PROCESS", map[string]any{"name": "web"}))).Process.State)
		require.Equal(t, "absent", resultOf[process](t,
			r.do(newTask("tsk_6", "INSPECT_PROCESS", map[string]any{"name": "other"}))).Process.State)
	})
}
