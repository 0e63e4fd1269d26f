package e2e_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goCaches are the caches of the tests' user: with a home of its own a program would be built from nothing.
var goCaches = sync.OnceValue(func() (set []string) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		if at, err := exec.Command("go", "env", name).Output(); err == nil {
			set = append(set, name+"="+strings.TrimSpace(string(at)))
		}
	}
	return set
})

// environment is a shell of one person: the project and the programs are found, and a session was opened.
func (w *walker) environment(who string) []string {
	w.t.Helper()
	home := filepath.Join(w.home, who)
	env := append(os.Environ(), "PATH="+w.bin+":"+os.Getenv("PATH"), "HOME="+home, "XDG_CONFIG_HOME="+home,
		"APPCTL_SERVER="+shared.URL, "APPCTL_PROJECT="+w.project, "TERM=dumb", "RUN=7",
		"EXAMPLES="+filepath.Join(filepath.Dir(w.bin), "examples"), "DATABASE_URL="+shared.AdminDSN())
	env = append(append(env, goCaches()...), w.variables...)
	if _, err := os.Stat(home); err == nil {
		return env
	}
	require.NoError(w.t, os.MkdirAll(home, 0o700))
	user := w.people[who]
	if user == "" {
		return env
	}
	_, code, err := shared.LoginLink(w.ctx, user)
	require.NoError(w.t, err)
	login := exec.CommandContext(w.ctx, filepath.Join(w.bin, "appctl"), "login", "--server", shared.URL, "--code", code)
	login.Env = env
	printed, err := login.CombinedOutput()
	require.NoError(w.t, err, "%s", printed)
	return env
}

// shell is how lines of a block begin and end: the first wrong line ends them, and what they set is there in further
// lines of the block.
const shell = `set -euo pipefail
[ ! -f "$HOME/variables" ] || . "$HOME/variables"
set -a
%LINES%
export -p > "$HOME/variables"
`

// runs runs lines as one script at a terminal, where every question is confirmed, and requires that each line succeeds.
func (w *walker) runs(who string, lines []string) {
	w.t.Helper()
	if len(lines) == 0 {
		return
	}
	env := w.environment(who)
	script := filepath.Join(w.home, who, "script.sh")
	text := strings.ReplaceAll(shell, "%LINES%", strings.Join(lines, "\n"))
	require.NoError(w.t, os.WriteFile(script, []byte(text), 0o600))
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "bash "+script, "/dev/null")
	command.Env, command.Dir = env, w.dir
	answers, person, err := os.Pipe() // stays open: at its end the terminal would wait for the script to read that
	require.NoError(w.t, err)
	defer func() { _, _ = answers.Close(), person.Close() }()
	_, err = person.WriteString(strings.Repeat("y\n", 2*len(lines)))
	require.NoError(w.t, err)
	command.Stdin = answers
	said, err := command.CombinedOutput()
	assert.NoError(w.t, err, "%s\n%s", strings.Join(lines, "\n"), said) // the next block may hold for all that
	w.said += string(said)
	for _, found := range printed.FindAllStringSubmatch(string(said), -1) {
		w.seen[kindOf(found[1]+found[2]+found[3])] = found[0]
	}
}

// freshTerminals forgets what a block has set.
func (w *walker) freshTerminals() {
	w.t.Helper()
	kept, err := filepath.Glob(filepath.Join(w.home, "*", "variables"))
	require.NoError(w.t, err)
	for _, file := range kept {
		require.NoError(w.t, os.Remove(file))
	}
}

// listening is the address, or the port of this machine, that a program's line names.
var listening = regexp.MustCompile(`--listen (\S+)|appctl forward \S+ \S+ (\d+)`)

// starts runs a program until the walk ends, and waits until it listens.
func (w *walker) starts(who, line string) {
	w.t.Helper()
	env := w.environment(who)
	program := exec.Command("bash", "-c", "exec "+strings.TrimSuffix(strings.TrimSpace(line), "&"))
	program.Env, program.Dir = env, w.dir
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	program.Stdout, program.Stderr = &said, &said
	require.NoError(w.t, program.Start())
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	w.t.Cleanup(func() {
		_ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL)
		<-ended
		if w.t.Failed() {
			w.t.Logf("%s: %s", line, said.String())
		}
	})
	found := listening.FindStringSubmatch(line)
	require.NotNil(w.t, found, "%s: a program that goes on names its address", line)
	at := found[1]
	if at == "" {
		at = net.JoinHostPort("127.0.0.1", found[2])
	}
	require.Eventually(w.t, func() bool {
		connection, err := net.Dial("tcp", at)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, line)
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
