package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/cli"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

func TestExitCodesTellScriptsWhatHappened(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"NOT_FOUND": 3, "UNAUTHENTICATED": 4, "TOKEN_EXPIRED": 4, "FORBIDDEN": 4, "NOT_ENTITLED": 4, "CONFLICT": 5,
		"FAILED_PRECONDITION": 5, "IDEMPOTENCY_KEY_REUSED": 5, "CONFIG_INVALID": 6, "INVALID_ARGUMENT": 6,
		"INCOMPATIBLE":   6,
		"LIMIT_EXCEEDED": 6, "ADAPTER_UNAVAILABLE": 7, "INTERNAL": 1, "A_CODE_OF_A_NEWER_PLATFORM": 1,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Handle("app", refuse(code, "no"))
			got := r.run(t.Context(), "", "apps", "show", "hello")
			require.Equal(t, want, got.code)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, "error: "+code+": no\n")
		})
	}
}

// TestErrors holds what a person and what a script read of each kind of error.
func TestErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle("launchInstance", refuse("CONFIG_INVALID", "the configuration does not fit",
		object{"code": "BAD_VALUE", "message": "must be at least 1", "path": "input.config.workers"},
		object{"code": "UNKNOWN_FIELD", "message": "no such\x1b[31m field", "path": "input.config.x"}))
	r.Handle("lintManifest", answer(object{"ok": false,
		"reasons": []object{{"code": "NOT_PINNED", "message": "no digest", "path": "artifacts.0.ref"}}}))
	r.HandleStream("operationProgress", progressTo("FAILED"))
	r.Handle("planRemoveMember", answer(refused("MEMBER_REMOVE")))
	r.Handle("planLaunchInstance", answer(object{"hash": "h2", "allowed": false, "version": "1.2.0",
		"members": []object{}, "cost": planCost(),
		"verdicts": []object{{"source": "POLICY", "outcome": "REFUSED", "code": "POLICY_DENIED",
			"reasons": []object{{"code": "MEMBERS_CEILING", "message": "at most 4 members",
				"path": "input.components"}}}}}))
	r.Handle("planReleaseAllocation", answer(object{"hash": "h3", "allocation": object{"id": "alc_1", "name": "slot-1"},
		"instance": nil,
		"allowed":  false, "code": "CONFLICT", "reasons": []object{{"code": "CONFLICT",
			"message": "op_7 is under way"}}, "cost": planCost()}))
	r.Handle("requestAllocation", refuse("INVALID_ARGUMENT", "must be 1 to 64",
		object{"code": "INVALID_ARGUMENT", "message": "must be 1 to 64", "path": "input.count"}))
	document := r.file(t, "manifest.json", `{"slug":"hello"}`)
	broken := r.file(t, "broken.json", `{`)
	lines := [][]string{
		{"launch", "hello", "--name", "one", "--allocation", "alc_1", "--set", "workers=0"},
		{"launch", "hello", "--name", "one", "--allocation", "alc_1", "--plan"},
		{"allocations", "release", "slot-1", "--plan"},
		{"allocations", "request", "--count", "99"},
		{"admin", "manifest", "lint", document},
		{"admin", "manifest", "publish", broken},
		{"ops", "watch", "op_1"},
		{"decommission", "one", "--wait"},
		{"decommission", "two"},
		{"apps", "show", "nothing"},
		{"instances", "list", "--project", "nothing"},
		{"allocations", "list", "--status", "lost"},
		{"launch", "hello", "--name", "one"},
		{"launch", "hello", "--name", "one", "--allocation", "nothing"},
		{"launch", "hello", "--name", "one", "--allocation", "alc_1", "--component", "worker"},
		{"action", "run", "one", "greet", "--input", "{"},
		{"action", "run", "one", "greet", "--set", "x"},
		{"events", "tail"},
		{"instances", "list", "-o", "yaml"},
		{"instances", "list", "--limit", "0"},
		{"instances"},
		{"instances", "shew"},
		{"admin", "key", "create", "sa_1", "--expires", "yesterday"},
		{"context", "use", "nowhere"},
		{"members", "drain", "mem_1"},
		{"members", "drain", "mem_1", "--on-deadline", "later", "--yes"},
		{"members", "remove", "one/worker/0", "--yes"},
		{"members", "remove", "one/worker/9"},
		{"members", "show", "worker"},
		{"members", "add", "one", "--component", "worker", "--gpus", "2", "--yes"},
		{"members", "label", "mem_1", "=b"},
		{"members", "label", "mem_1"},
		{"instances", "upgrade", "one", "--yes"},
		{"projects", "quota", "--max-gpus", "few"},
	}
	var text strings.Builder
	for _, args := range lines {
		for _, form := range [][]string{nil, {"-o", "json"}} {
			if form != nil && slices.Contains(args, "-o") {
				continue
			}
			full := append(append([]string{}, args...), form...)
			text.WriteString(r.text(full, r.run(t.Context(), "", full...)))
		}
	}
	golden(t, "errors", text.String())
}

func TestWaitThatTakesTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.HandleStream("operationProgress", func(call clienttest.Call, emit func(any) error) error {
		_ = emit(operation("INSTANCE_CREATE", "RUNNING", 40))
		<-call.Context.Done()
		return nil
	})
	got := r.run(t.Context(), "", "ops", "watch", "op_1", "--timeout", "200ms")
	require.Equal(t, 7, got.code)
	require.Contains(t, got.stderr, "DEADLINE_EXCEEDED: operation op_1 has not ended after 200ms")
}

func TestInterruptIsExitCode130(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		_ = emit(event(1, "apps.instance.requested"))
		cancel()
		<-call.Context.Done()
		return nil
	})
	got := r.run(ctx, "", "events", "tail", "-f", "one")
	require.Equal(t, 130, got.code)
}

func TestTailFollowsOverAServerThatGoesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["after"] == nil {
			_ = emit(event(1, "apps.instance.requested"))
			return clienttest.ErrDrop
		}
		return emit(event(2, "apps.instance.running"))
	})
	got := r.run(t.Context(), "", "events", "tail", "-f", "one", "--until", "apps.instance.running")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, 2, strings.Count(got.stdout, "\n"))
	require.Contains(t, got.stderr, "trying again in")
}

func TestNoServerIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	got := r.run(t.Context(), "", "nodes", "-o", "json")
	require.Equal(t, 7, got.code)
	var problem struct {
		Error struct {
			Code      string
			Retryable bool
		}
		ExitCode int
	}
	require.NoError(t, json.Unmarshal([]byte(got.stderr), &problem), "nothing but the JSON: %s", got.stderr)
	require.Equal(t, "UNAVAILABLE", problem.Error.Code)
	require.True(t, problem.Error.Retryable)
	require.Equal(t, 7, problem.ExitCode)
}

func TestLaunchSendsWhatWasAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	config := r.file(t, "config.json", `{"greeting":"hi","deep":{"a":1}}`)
	got := r.run(t.Context(), "", "launch", "hello", "--name", "one", "--allocation", "slot-1,alc_2", "--allocation",
		"alc_3",
		"--component", "worker=3", "--config", config, "--set", "deep.a=2", "--version", "1.2.0", "--deadline", "2m",
		"--smoke",
		"--reason", "try", "--idempotency-key", "k1", "--project", "prj_9")
	require.Zero(t, got.code, got.stderr)
	sent, err := json.Marshal(r.CallsOf("launchInstance")[0].Input())
	require.NoError(t, err)
	require.JSONEq(t, `{"projectId":"prj_9","appSlug":"hello","version":"1.2.0","name":"one","allocationIds":["alc_1","alc_2","alc_3"],
		"components":[{"key":"worker","count":3}],"config":{"greeting":"hi","deep":{"a":2}},"deadlineSeconds":120,"smoke":true,
		"reason":"try","idempotencyKey":"k1"}`, string(sent))
}

func TestLoginKeepsThePrivateConfigurationThatCommandsUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = map[string]string{}
	got := r.run(t.Context(), "", "login", "--server", r.URL, "--code", "http://console/#code=good",
		"--project", "demo")
	require.Zero(t, got.code, got.stderr)
	golden(t, "login", r.text([]string{"login"}, got))
	info, err := os.Stat(r.config())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Zero(t, r.run(t.Context(), "", "instances", "list").code)
	require.Equal(t, "prj_1", r.CallsOf("instances")[0].Args["projectId"])

	require.Zero(t, r.run(t.Context(), "", "logout").code)
	got = r.run(t.Context(), "", "instances", "list")
	require.Equal(t, 4, got.code)
	require.Contains(t, got.stderr, "not logged in")
}

func TestLoginTakesATokenFromStdinAndChecksIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = map[string]string{}
	got := r.run(t.Context(), "gpu_ses_wrong\n", "login", "--server", r.URL, "--token-stdin")
	require.Equal(t, 4, got.code)
	require.NoFileExists(t, r.config())
	got = r.run(t.Context(), "gpu_ses_test\n", "login", "--server", r.URL, "--token-stdin", "--context", "lab")
	require.Zero(t, got.code, got.stderr)
	got = r.run(t.Context(), "", "context", "list")
	golden(t, "context-list", r.text([]string{"context", "list"}, got))
	require.Zero(t, r.run(t.Context(), "", "context", "delete", "lab").code)
	require.Equal(t, 2, r.run(t.Context(), "", "whoami").code)
}

func TestLoginNeedsToKnowHow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, 2, r.run(t.Context(), "", "login").code)
	require.Equal(t, 2, r.run(t.Context(), "", "login", "--code", "good", "--token-stdin").code)
	require.Equal(t, 4, r.run(t.Context(), "bad\n", "login", "--code", "-").code)
}

func TestCredentialGoesOnlyToTheServerThatGaveIt(t *testing.T) {
	t.Parallel()
	r, other := newRig(t), newRig(t)
	r.env = map[string]string{}
	require.Zero(t, r.run(t.Context(), "", "login", "--server", r.URL, "--code", "good").code)
	got := r.run(t.Context(), "", "whoami", "--server", other.URL)
	require.Equal(t, 4, got.code)
	require.Empty(t, other.Calls())
}

func TestTokenFileServesScripts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env = map[string]string{"APPCTL_SERVER": r.URL, "APPCTL_TOKEN_FILE": r.file(t, "token", "gpu_ses_test\n")}
	require.Zero(t, r.run(t.Context(), "", "whoami").code)
	r.env["APPCTL_TOKEN_FILE"] = filepath.Join(r.dir, "none")
	require.Equal(t, 2, r.run(t.Context(), "", "whoami").code)
}

func TestProjectOfTheFlagWinsOverTheEnvironment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env["APPCTL_PROJECT"] = "prj_env"
	require.Zero(t, r.run(t.Context(), "", "instances", "list").code)
	require.Zero(t, r.run(t.Context(), "", "instances", "list", "--project", "prj_flag").code)
	calls := r.CallsOf("instances")
	require.Equal(t, "prj_env", calls[0].Args["projectId"])
	require.Equal(t, "prj_flag", calls[1].Args["projectId"])
}

func TestLiveInstanceIsMeantByItsName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	named := func(id, name string, released any) object {
		return object{"id": id, "name": name, "createdAt": at, "updatedAt": at, "releasedAt": released}
	}
	r.Handle("instances", answer(page(named("ins_5", "one-more", nil), named("ins_4", "one", at),
		named("ins_3", "one", nil), named("ins_2", "two", at), named("ins_1", "two", at))))
	require.Zero(t, r.run(t.Context(), "", "instances", "show", "one").code)
	require.Zero(t, r.run(t.Context(), "", "instances", "show", "two").code)
	calls := r.CallsOf("instance")
	require.Equal(t, "ins_3", calls[0].Args["id"])
	require.Equal(t, "ins_2", calls[1].Args["id"], "of ended ones the newest")
}

func TestSeveralProjectsAskForAChoice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	second := project()
	second["id"], second["slug"] = "prj_2", "other"
	r.Handle("viewer", answer(object{"projects": page(project(), second)}))
	got := r.run(t.Context(), "", "instances", "list")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "one of: demo, other")
	require.Zero(t, r.run(t.Context(), "", "instances", "list", "--project", "other").code)
	require.Equal(t, "prj_2", r.CallsOf("instances")[0].Args["projectId"])
}

func TestCompletionKnowsAppsInstancesAndActions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for line, want := range map[string]string{
		"launch ": "hello\tHello cluster\n", "instances show ": "one\tRUNNING\n",
		"action run one ": "greet\tSay hello\n",
		"inst":            "instances\tRunning apps\n",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		got := r.run(t.Context(), "", args...)
		require.Zero(t, got.code)
		require.Contains(t, got.stdout, want, line)
	}
}

func TestCompletionOfABrokenServerIsEmptyAndQuick(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	began := time.Now()
	got := r.run(t.Context(), "", "__complete", "apps", "show", "")
	require.Zero(t, got.code)
	require.Equal(t, ":4\n", got.stdout)
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestProcessReadsTheConfigurationsPlace(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/x")
	require.Equal(t, "/x/appctl/config.json", cli.Process().ConfigPath)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "/home/ada")
	require.Equal(t, "/home/ada/.config/appctl/config.json", cli.Process().ConfigPath)
}
