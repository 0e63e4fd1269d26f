package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type walk struct {
	file  string
	staff []string          // parts of lines that the platform's staff runs
	left  map[string]string // parts of lines that are not run, with the reason
}

// walker is a person at a terminal, with what the placeholders of a document stand for.
type walker struct {
	t       *testing.T
	ctx     context.Context
	dir     string // where commands run
	project string
	known   map[string]string // ids by their prefix
	demo    string            // the instance
}

func TestGuidesAreTrueToTheLetter(t *testing.T) {
	needsRoot(t)
	w := &walker{t: t, ctx: bounded(t), dir: t.TempDir(), known: make(map[string]string)}
	w.cluster()
	t.Run("wrong input", func(t *testing.T) {
		walked := *w
		walked.t = t
		walked.refuses()
	})
	for _, one := range walks {
		t.Run(filepath.Base(one.file), func(t *testing.T) {
			walked := *w
			walked.t = t
			walked.walk(one)
		})
	}
}

// walk runs a document's blocks, and requires that each line that is left out is there.
func (w *walker) walk(one walk) {
	w.t.Helper()
	left, ran := make(map[string]bool), 0
	for _, block := range blocksOf(w.t, one.file) {
		var script, staff []string
		flush := func() {
			w.runs("dana", script)
			w.runs("staff", staff)
			ran += len(script) + len(staff)
			script, staff = nil, nil
		}
		for _, line := range block {
			key := part(line, one.left)
			if key != "" {
				left[key] = true
				continue
			}
			if w.unknown(line) {
				flush() // it may be of what the lines before it make
			}
			if among(line, one.staff) {
				staff = append(staff, w.filled(line))
			} else {
				script = append(script, w.filled(line))
			}
		}
		flush()
	}
	require.NotZero(w.t, ran)
	for key := range one.left {
		require.True(w.t, left[key], "the document has no line with %q any more: take the exception away", key)
	}
}

var (
	commandLine = regexp.MustCompile(`(^|[ (])appctl `)
	// placeholder is an id that a document leaves open.
	placeholder = regexp.MustCompile(`\b([a-z]{2,3})_…`)
	// remark is what follows a command on its line.
	remark = regexp.MustCompile(`\s{2,}#.*$|\s+# [^"']*$`)
)

// blocksOf reads the indented blocks of a document that have commands; a line that ends in \ goes on.
func blocksOf(t *testing.T, file string) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	require.NoError(t, err)
	var block []string
	for _, line := range append(strings.Split(string(text), "\n"), "") {
		body, indented := strings.CutPrefix(line, "    ")
		if indented {
			if last := len(block) - 1; last >= 0 && strings.HasSuffix(block[last], `\`) {
				block[last] = strings.TrimSuffix(block[last], `\`) + strings.TrimSpace(body)
			} else {
				block = append(block, body)
			}
			continue
		}
		if strings.Contains(strings.Join(block, "\n"), "appctl ") {
			blocks = append(blocks, commandsOf(block))
		}
		block = nil
	}
	return blocks
}

// commandsOf drops what is no command: what a program of another language or an answer looks like.
func commandsOf(block []string) (lines []string) {
	for _, line := range block {
		line = remark.ReplaceAllString(line, "")
		if commandLine.MatchString(line) || strings.HasPrefix(line, "chmod ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func part(line string, of map[string]string) string {
	for key := range of {
		if strings.Contains(line, key) {
			return key
		}
	}
	return ""
}

func among(line string, parts []string) bool {
	for _, one := range parts {
		if strings.Contains(line, one) {
			return true
		}
	}
	return false
}

// unknown reports whether a line has a placeholder that stands for something that is yet to be found.
func (w *walker) unknown(line string) bool {
	for _, found := range placeholder.FindAllStringSubmatch(line, -1) {
		if w.known[found[1]] == "" {
			return true
		}
	}
	return false
}

// filled is a line with its placeholders filled in.
func (w *walker) filled(line string) string {
	w.t.Helper()
	for word, id := range w.known {
		if strings.ToUpper(word) == word {
			line = strings.ReplaceAll(line, word, id)
		}
	}
	return placeholder.ReplaceAllStringFunc(line, func(found string) string {
		prefix := strings.TrimSuffix(found, "_…")
		id, known := w.known[prefix]
		if !known {
			id = w.made(prefix)
		}
		require.NotEmpty(w.t, id, "%q needs an id of a kind that the walk does not have", line)
		return id
	})
}

// made makes what a placeholder stands for, where a document has made none before.
func (w *walker) made(prefix string) string {
	w.t.Helper()
	if prefix == "op" {
		return w.waitingDrain()
	}
	if prefix == "sa" {
		if w.says("dana", "appctl admin service-account list -q") == "" {
			return w.says("dana", "appctl admin service-account create walker --permission project.read -q")
		}
		return w.newest("appctl admin service-account list -q")
	}
	if prefix == "key" {
		return w.says("dana", "appctl admin key create "+w.newest("appctl admin service-account list -q")+" -q | sed -E 's/^gpu_sa_([0-9a-z]+)_.*/key_\\1/'")
	}
	return ""
}

// newest is the last id that a command lists.
func (w *walker) newest(command string) string {
	w.t.Helper()
	ids := strings.Fields(w.says("dana", command))
	require.NotEmpty(w.t, ids, command)
	return ids[len(ids)-1]
}

// environment is a shell of one person: the project and the programs are found, and a session was opened.
func (w *walker) environment(who string) []string {
	w.t.Helper()
	bin, err := filepath.Abs("../../bin")
	require.NoError(w.t, err)
	home := filepath.Join(w.dir, "home-"+who)
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "XDG_CONFIG_HOME="+home,
		"APPCTL_SERVER="+shared.URL, "APPCTL_PROJECT="+w.project, "TERM=dumb", "RUN=7")
	if _, err := os.Stat(home); err == nil {
		return env
	}
	require.NoError(w.t, os.MkdirAll(home, 0o700))
	user := map[string]string{"dana": shared.Demo.AdminID, "staff": shared.Demo.OperatorID}[who]
	_, code, err := shared.LoginLink(w.ctx, user)
	require.NoError(w.t, err)
	login := exec.CommandContext(w.ctx, filepath.Join(bin, "appctl"), "login", "--server", shared.URL, "--code", code)
	login.Env = env
	printed, err := login.CombinedOutput()
	require.NoError(w.t, err, "%s", printed)
	return env
}

// runs runs lines as one script at a terminal, where everything that is asked is confirmed, and requires that each
// succeeds.
func (w *walker) runs(who string, lines []string) {
	w.t.Helper()
	if len(lines) == 0 {
		return
	}
	script := filepath.Join(w.dir, "script.sh")
	require.NoError(w.t, os.WriteFile(script, []byte("set -euo pipefail\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "bash "+script, "/dev/null")
	command.Env, command.Dir = w.environment(who), w.dir
	command.Stdin = strings.NewReader(strings.Repeat("y\n", 2*len(lines)))
	printed, err := command.CombinedOutput()
	assert.NoError(w.t, err, "%s\n%s", strings.Join(lines, "\n"), printed) // the next block may hold for all that
}

// says runs a command without a terminal and returns what it prints.
func (w *walker) says(who, line string) string {
	w.t.Helper()
	command := exec.CommandContext(w.ctx, "bash", "-euo", "pipefail", "-c", line)
	command.Env, command.Dir = w.environment(who), w.dir
	var complaints bytes.Buffer
	command.Stderr = &complaints
	printed, err := command.Output()
	require.NoError(w.t, err, "%s: %s", line, complaints.String())
	return strings.TrimSpace(string(printed))
}

// cluster gives the walk a project of its own with the cluster that the documents speak of: demo, with three peers, and
// two more allocations.
func (w *walker) cluster() {
	w.t.Helper()
	made, err := gql.CreateProject(w.ctx, shared.Operator,
		gql.CreateProjectInput{TenantId: shared.Demo.TenantID, Slug: "demo",
			DisplayName: "Demo", IdempotencyKey: client.NewKey()})
	require.NoError(w.t, err)
	w.project = made.CreateProject.Id
	w.t.Cleanup(func() { w.ended() })
	_, err = gql.GrantRole(w.ctx, shared.Operator, gql.GrantRoleInput{SubjectId: shared.Demo.AdminID,
		Role:      "project_admin",
		ProjectId: w.project, Reason: "end-to-end test"})
	require.NoError(w.t, err)
	_, err = gql.GrantEntitlement(w.ctx, shared.Operator, w.project, "hello-cluster", nil, nil, "")
	require.NoError(w.t, err)
	for _, name := range []string{"slot-1", "slot-2", "slot-3"} {
		w.says("dana", "appctl allocations request --shape gpu-slice --gpus 1 --name "+name)
	}
	w.demo = w.says("dana", "appctl launch hello-cluster --name demo --allocation slot-1 --wait -q")
	w.says("dana", "appctl members add demo --component peer --count 1 --allocation slot-1 --yes --wait -q")
	w.known["NAME"], w.known["SLUG"], w.known["APP@VERSION"] = "demo", "hello-cluster", "hello-cluster@"+w.says("dana",
		`appctl instances show demo -o json | sed -n 's/^  "appVersion": "\(.*\)",$/\1/p'`)
	w.known["TENANT"] = string(shared.Demo.TenantID)
	w.known["OPERATION"] = w.newest("appctl ops list --instance demo -q")
	w.known["ins"], w.known["prj"], w.known["usr"] = w.demo, w.project, shared.Demo.MemberID
}

// waitingDrain is a drain that waits for work.
func (w *walker) waitingDrain() string {
	w.t.Helper()
	var members []struct {
		ID, Status string
		Index      int
	}
	require.NoError(w.t, json.Unmarshal([]byte(w.says("dana", "appctl members list demo -o json")), &members))
	for _, member := range members {
		if member.Status == "ACTIVE" {
			w.says("dana", fmt.Sprintf(`appctl action run demo work.start --input '{"seconds":600,"member":"peer-%d"}'`,
				member.Index))
			return w.says("dana", "appctl members drain "+member.ID+" --no-plan -q")
		}
	}
	w.t.Fatal("no member is active")
	return ""
}

// ended gives everything back that the walk has used.
func (w *walker) ended() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	w.ctx = ctx
	if w.demo != "" {
		w.says("dana", "appctl decommission "+w.demo+` --force --reason "the walk is over" --yes --wait -q`)
	}
	for _, id := range strings.Fields(w.says("dana", "appctl allocations list -q --status ready")) {
		w.says("dana", "appctl allocations release "+id+" --wait -q")
	}
	w.says("dana", `appctl admin project delete --reason "the walk is over" -q`)
}
