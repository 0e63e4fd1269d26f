package agent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
)

// keep puts a runtime secret into the stand-in's custody.
func (r *rig) keep(id, value string, once bool) {
	r.t.Helper()
	sealed := r.sealFor(instance, value)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		r.secrets = map[string]*standSecret{}
	}
	r.secrets[id] = &standSecret{sealed: sealed, once: once}
}

func (r *rig) deliveries(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secrets[id].deliveries
}

func codeOf(t *testing.T, done standTask) string {
	t.Helper()
	require.Equal(t, "FAILED", done.State)
	return resultOf[struct{ Code string }](t, done).Code
}

func TestASecretIsRedeemedWhenItIsUsedAndReachesTheTaskAndNothingElse(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.keep(secretID("env"), "s3cret-of-env", true)
		r.keep(secretID("file"), "s3cret-of-file", true)
		run := newTask("tsk_env", "RUN", map[string]any{
			"command": []string{"sh", "-c", `test "$A" = s3cret""-of-env && test "$B" = "$A" && echo right`},
			"env": []any{map[string]any{"name": "A", "secretRef": secretID("env")},
				map[string]any{"name": "B", "secretRef": secretID("env")}},
		})
		require.Equal(t, "right\n", resultOf[runResult](t, r.do(run)).Stdout)
		require.Equal(t, 1, r.deliveries(secretID("env")), "one task asks once")
		file := newTask("tsk_file", "WRITE_FILE", map[string]any{"path": "/run/key", "mode": "0600",
			"secretRef": secretID("file")})
		require.Equal(t, "SUCCEEDED", r.do(file).State)
		require.Equal(t, "14 600\n", resultOf[runResult](t,
			r.do(shell("tsk_size", "stat -c '%s %a' "+root+"/run/key"))).Stdout)
		require.NotContains(t, r.log.text(), "s3cret")
		for name, content := range r.stateFiles() {
			if !strings.HasSuffix(name, "/run/key") {
				require.NotContains(t, content, "s3cret", name)
				require.NotContains(t, content, r.secrets[secretID("env")].sealed, name)
			}
		}
		for id := range r.tasks {
			require.NotContains(t, string(r.seen(id).result)+r.seen(id).message, "s3cret", id)
		}
	})
}

func TestSecretsThatCannotBeHadFailTheTaskWithTheirCode(t *testing.T) {
	t.Parallel()
	r := newRig(t, memberinit.ModeProcess)
	r.keep(secretID("spent"), "x", true)
	write := func(id, ref string) standTask {
		return r.do(newTask(id, "WRITE_FILE", map[string]any{"path": "/run/key", "secretRef": ref}))
	}
	require.Equal(t, "SUCCEEDED", write("tsk_a", secretID("spent")).State)
	require.Equal(t, "SECRET_SPENT", codeOf(t, write("tsk_b", secretID("spent"))))
	require.Equal(t, "SECRET_UNKNOWN", codeOf(t, write("tsk_c", secretID("other"))))
	sealed := r.sealFor("ins_other", "x")
	r.mu.Lock()
	r.secrets[secretID("foreign")] = &standSecret{sealed: sealed}
	r.mu.Unlock()
	require.Equal(t, "SEALED_INVALID", codeOf(t, write("tsk_d", secretID("foreign"))))
	both := r.do(newTask("tsk_e", "WRITE_FILE", map[string]any{"path": "/run/key", "content": "x",
		"secretRef": secretID("spent")}))
	require.Equal(t, "SPEC_INVALID", codeOf(t, both))

	r.mu.Lock()
	r.refuse = func(operation string) bool { return operation == "RedeemRuntimeSecret" }
	r.mu.Unlock()
	r.keep(secretID("late"), "x", false)
	late := newTask("tsk_f", "RUN", map[string]any{"command": []string{"true"},
		"env": []any{map[string]any{"name": "A", "secretRef": secretID("late")}}})
	late.TimeoutSeconds = 1
	require.Equal(t, "SECRET_UNAVAILABLE", codeOf(t, r.do(late)))
}

func TestAnAgentThatRestartsRedeemsAgainOrAttachesToWhatHasTheSecretAlready(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"once": true, "until expiry": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, memberinit.ModeProcess)
			r.keep(secretID("a"), "s3cret", once)
			work := newTask("tsk_a", "RUN", map[string]any{
				"command": []string{"sh", "-c", "echo begun; while [ ! -e " + root +
					"/go ]; do sleep 0.05; done; echo ${#A}"},
				"env": []any{map[string]any{"name": "A", "secretRef": secretID("a")}},
			})
			r.give(work)
			r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command runs")
			r.kill()
			r.run()
			r.do(shell("tsk_go", "touch "+root+"/go"))
			require.Equal(t, "begun\n6\n", resultOf[runResult](t, r.ended("tsk_a")).Stdout)
			require.Equal(t, map[bool]int{true: 1, false: 2}[once], r.deliveries(secretID("a")))
		})
	}
}

// secretID is a valid id of a runtime secret for a name; i, l, o and u are not in an id's alphabet.
func secretID(name string) string {
	body := strings.NewReplacer("i", "1", "l", "1", "o", "0", "u", "v").Replace(name)
	return "sec_" + strings.Repeat("0", 26-len(body)) + body
}
