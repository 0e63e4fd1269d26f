package e2e_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slip is a command of a guide with something wrong in it: who runs it, the exit code, and the code of the answer, or
// the words of a program that has no codes.
type slip struct {
	guide, who, line string
	exit             int
	code             string
}

// slips have, for each guide whose commands are walked, what its readers get wrong.
var slips = []slip{
	{"runbooks/README.md", "dana", "appctl instances show nothing", 3, "NOT_FOUND"},
	{"runbooks/README.md", "dana", "appctl ops show op_1", 6, "INVALID_ARGUMENT"},
	{"runbooks/README.md", "dana", "appctl events tail nothing", 3, "NOT_FOUND"},
	{"runbooks/README.md", "dana", "appctl audit list --limit 0", 2, "USAGE"},
	{"runbooks/README.md", "dana", "appctl triage nothing", 3, "NOT_FOUND"},
	{"runbooks/README.md", "dana", "appctl triage nothing --do --yes", 3, "NOT_FOUND"},
	{"runbooks/README.md", "dana", "appctl triage nothing --bundle nothing.jsonl", 3, "NOT_FOUND"},
	{"runbooks/README.md", "dana", "appctl bundle verify nothing.jsonl", 2, "USAGE"},
	{"guides/numbers.md", "dana", "appctl top nothing", 3, "NOT_FOUND"},
	{"guides/numbers.md", "dana", "appctl top demo --sort size", 2, "USAGE"},
	{"runbooks/instance-stuck.md", "dana", "appctl decommission demo --deadline 1s --reason x --yes", 6,
		"INVALID_ARGUMENT"},
	{"runbooks/instance-stuck.md", "dana", "appctl ops list --state stuck", 2, "USAGE"},
	{"runbooks/instance-stuck.md", "dana", "appctl allocations release nothing", 3, "NOT_FOUND"},
	{"runbooks/artifact.md", "dana", "appctl artifact show sha256:" + strings.Repeat("0", 64), 3, "NOT_FOUND"},
	{"runbooks/billing.md", "dana", "appctl billing verify brn_1", 6, "INVALID_ARGUMENT"},
	{"runbooks/billing.md", "dana", "appctl billing runs ten_1", 6, "INVALID_ARGUMENT"},
	{"runbooks/catalog.md", "dana", "appctl apps show nothing", 3, "NOT_FOUND"},
	{"runbooks/catalog.md", "dana", "appctl apps fit nothing", 3, "NOT_FOUND"},
	{"runbooks/catalog.md", "dana", "echo '{}' > wrong.json; appctl manifest lint wrong.json", 6, "MANIFEST_INVALID"},
	{"runbooks/operator.md", "dana", "appctl admin adapter list", 4, "FORBIDDEN"},
	{"runbooks/operator.md", "dana", "appctl admin key revoke key_1 --reason leaked", 6, "INVALID_ARGUMENT"},
	{"guides/audit.md", "dana", "appctl audit verify", 4, "FORBIDDEN"},
	{"guides/audit.md", "staff", "appctl audit verify --against nothing.jsonl", 2, "USAGE"},
	{"guides/policy.md", "dana", "echo '{\"region\":{}}' > wrong.json; appctl policy set wrong.json --reason x", 6,
		"INVALID_ARGUMENT"},
	{"guides/policy.md", "dana", "appctl policy set nothing.json --reason x", 1, "FAILED"},
	{"guides/policy.md", "dana", "appctl entitlements grant nothing --max-instances 2 --reason trial", 3, "NOT_FOUND"},
	{"guides/permissions.md", "dana", "appctl why apps.instance.creat", 6, "INVALID_ARGUMENT"},
	{"guides/permissions.md", "dana", "appctl admin grant usr_1 project_admin --project demo --expires 720h", 6,
		"INVALID_ARGUMENT"},
	{"guides/permissions.md", "dana", "appctl admin grant usr_1 emperor --project demo", 6, "INVALID_ARGUMENT"},
	{"guides/permissions.md", "dana", "appctl admin revoke rb_1", 6, "INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana", "appctl admin service-account create Pipe/Line --permission project.read", 6,
		"INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana",
		"appctl admin service-account create other --permission apps.instance.reed", 6, "INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana", "appctl admin service-account create other --permission node.read", 6,
		"INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana", "appctl admin key create sa_1 --expires 2160h", 6, "INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana", "appctl admin key create sa_1 --expires never", 2, "USAGE"},
	{"guides/service-accounts.md", "dana", "appctl token --life 10y --permission apps.instance.read", 2, "USAGE"},
	{"guides/service-accounts.md", "dana",
		"appctl launch hello-cluster --name x --allocation gpu-1 --set greeting=hello --wait", 3, "NOT_FOUND"},
	{"guides/service-accounts.md", "dana", "appctl action run demo hello.say --input '{\"nome\":\"ci\"}'", 6,
		"INVALID_ARGUMENT"},
	{"guides/service-accounts.md", "dana", "appctl action run demo hello.sing", 3, "NOT_FOUND"},
	{"guides/operate-a-cluster.md", "dana", "appctl members show demo/peer/9", 3, "NOT_FOUND"},
	{"guides/operate-a-cluster.md", "dana",
		"appctl members add demo --component worker --count 1 --allocation slot-1 --plan", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana",
		"appctl members add demo --component peer --count 0 --allocation slot-1 --yes", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana",
		"appctl members add demo --component peer --count 1 --allocation slot-9 --yes", 3, "NOT_FOUND"},
	{"guides/operate-a-cluster.md", "dana", "appctl members drain demo/peer/0 --deadline 5s --plan", 6,
		"INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana",
		"appctl members drain demo/peer/0 --deadline 30m --on-deadline force --yes", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana", "appctl members remove demo/peer/0 --plan-hash 0123", 5, "PLAN_STALE"},
	{"guides/operate-a-cluster.md", "dana", "appctl members recover demo/peer/0", 5, "FAILED_PRECONDITION"},
	{"guides/operate-a-cluster.md", "dana", "appctl members label demo/peer/0 '=b'", 2, "USAGE"},
	{"guides/operate-a-cluster.md", "dana", "appctl instances repair demo --mode sometimes", 2, "USAGE"},
	{"guides/operate-a-cluster.md", "dana", "appctl instances repair demo --mode automatic --budget -1 --reason x", 6,
		"INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana", "appctl instances upgrade demo --version 9.9.9 --plan", 3, "NOT_FOUND"},
	{"guides/operate-a-cluster.md", "dana", "appctl instances upgrade demo --set greting=hello --plan", 6,
		"CONFIG_INVALID"},
	{"guides/operate-a-cluster.md", "dana", "appctl instances rollback demo --generation 99 --plan", 3, "NOT_FOUND"},
	{"guides/operate-a-cluster.md", "dana", "appctl operations cancel OPERATION --reason x", 5, "FAILED_PRECONDITION"},
	{"guides/operate-a-cluster.md", "dana", "appctl operations retry OPERATION --plan", 5, "FAILED_PRECONDITION"},
	{"guides/operate-a-cluster.md", "dana", "appctl orphans retry orf_1", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana", "appctl tasks show tsk_1", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana", "appctl prices set gpu-large 2.50 --currency EUR", 4, "FORBIDDEN"},
	{"guides/operate-a-cluster.md", "staff", "appctl prices set gpu-large much --currency EUR", 6, "INVALID_ARGUMENT"},
	{"guides/operate-a-cluster.md", "dana", "appctl projects quota --max-gpus few", 2, "USAGE"},
	{"operations.md", "dana", "appctl nodes cordon node-1 --reason x", 4, "FORBIDDEN"},
	{"operations.md", "staff", "appctl nodes drain node-99 --reason x --deadline 4h", 3, "NOT_FOUND"},
	{"operations.md", "staff", "appctl nodes delete node-1 --yes", 5, "FAILED_PRECONDITION"},
}

// refuses runs each slip and requires its exit code, its code, and that nothing came of it.
func (w *walker) refuses() {
	before := w.state()
	for _, one := range slices.Concat(slips, slipsApart) {
		command := exec.CommandContext(w.ctx, "bash", "-uc", w.filled(one.line))
		command.Env, command.Dir = w.environment(one.who), w.dir
		var complaints bytes.Buffer
		command.Stderr = &complaints
		err := command.Run()
		what := fmt.Sprintf("%s: %s: %s", one.guide, one.line, complaints.String())
		var exit *exec.ExitError
		if !assert.ErrorAs(w.t, err, &exit, what) {
			continue
		}
		assert.Equal(w.t, one.exit, exit.ExitCode(), what)
		expected := one.code
		if strings.ToUpper(one.code) == one.code {
			expected = "error: " + one.code + ":"
		}
		assert.Contains(w.t, complaints.String(), expected, what)
	}
	require.Equal(w.t, before, w.state(), "something was written")
}

// state is what the slips might have changed.
func (w *walker) state() string {
	var all []string
	for _, line := range []string{"ops list -q", "members list demo -q", "allocations list -q", "instances list -q",
		"entitlements list -q",
		"policy show -q", "admin service-account list -q", "instances generations demo -q", "instances repair demo -q",
		"webhooks list -q", "secrets list demo -q", "control-planes list -q",
		// Others create objects in the same tenant meanwhile: of these, only what slips would have created is read.
		"source list | grep wrong || true", "artifact list | grep wrong || true",
		"budget list | grep $APPCTL_PROJECT || true", "volumes list | grep -i wrong || true",
	} {
		all = append(all, w.says("dana", "appctl "+line))
	}
	return strings.Join(all, "\n--\n")
}

func TestSlipsAreOfGuidesThatAreWalked(t *testing.T) {
	walked := map[string]bool{"docs/operations.md": true}
	for _, one := range slices.Concat(walks, apart) {
		walked[one.file] = true
	}
	slipped := make(map[string]bool)
	for _, one := range slices.Concat(slips, slipsApart) {
		file := one.guide
		if !strings.HasPrefix(file, "examples/") && file != "README.md" {
			file = "docs/" + file
		}
		slipped[file] = true
	}
	require.Equal(t, walked, slipped)
}

func TestEveryDocumentWithCommandsIsWalked(t *testing.T) {
	known := make(map[string]bool)
	for _, one := range slices.Concat(walks, apart) {
		known[one.file] = true
	}
	for file := range elsewhere {
		require.False(t, known[file], "%s is walked: take the exception away", file)
		known[file] = true
	}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guides/*.md", "docs/runbooks/*.md",
		"docs/adapter-contract/*.md", "examples/*/README.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		for _, path := range files {
			file, err := filepath.Rel(filepath.Join("..", ".."), path)
			require.NoError(t, err)
			assert.True(t, known[file] || len(blocksOf(t, file)) == 0, "%s has commands that nobody runs", file)
		}
	}
}
