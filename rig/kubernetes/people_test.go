package kubernetes_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// person is somebody with a folder and a login of their own, and kubectl as anybody has it.
type person struct {
	k    *cluster
	dir  string
	file string
}

// newPerson is somebody who has no kubeconfig yet.
func (k *cluster) newPerson() *person {
	k.t.Helper()
	p := &person{k: k, dir: k.t.TempDir()}
	k.t.Cleanup(k.endForwarding)
	require.NoError(k.t, os.Symlink(filepath.Join(os.Getenv(folderVar), "libexec", "kube"),
		filepath.Join(p.dir, "kubectl")))
	p.file = filepath.Join(p.dir, "kubeconfig")
	return p
}

// asPerson prints a kubeconfig for the cluster and keeps it.
func (k *cluster) asPerson(flags ...string) *person {
	k.t.Helper()
	p := k.newPerson()
	command := p.command(k.ctx, filepath.Join(k.bin, "appctl"), append([]string{"kubeconfig", k.instance}, flags...)...)
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	require.NoError(k.t, err, said.String())
	require.NotContains(k.t, string(out), "PRIVATE KEY", "the file has no key")
	require.NotContains(k.t, string(out), "client-certificate-data")
	require.NoError(k.t, os.WriteFile(p.file, out, 0o600))
	return p
}

// endForwarding ends what appctl forwards to the instance: it would go on for some minutes.
func (k *cluster) endForwarding() {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path) // one that has ended has none
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if words := strings.Split(string(line), "\x00"); err == nil && slices.Contains(words, "forward") &&
			slices.Contains(words, k.instance) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

func (p *person) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir, "KUBECONFIG="+p.file,
		"PATH="+p.k.bin+":"+os.Getenv("PATH"), "APPCTL_SERVER="+p.k.s.URL, "APPCTL_PROJECT="+p.k.s.Demo.ProjectID,
		"APPCTL_TOKEN="+p.k.s.Demo.ServiceAccountKey)
	return command
}

func (p *person) kubectl(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.k.ctx, patience)
	defer cancel()
	out, err := p.command(ctx, filepath.Join(p.dir, "kubectl"), args...).CombinedOutput()
	return string(out), err
}

// peopleReachIt has somebody use the cluster with kubectl of their own, through the platform's endpoint: get, exec,
// logs -f and port-forward, by which a pod answers; and somebody who may only look.
func (k *cluster) peopleReachIt() {
	k.t.Helper()
	p := k.asPerson()
	out, err := p.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	require.NoError(k.t, err, out)
	pod := strings.TrimSpace(out)
	require.True(k.t, strings.HasPrefix(pod, "web-"), pod)
	out, err = p.kubectl("auth", "whoami")
	require.NoError(k.t, err, out)
	k.t.Log("\n" + out)
	out, err = p.kubectl("exec", pod, "--", "/usr/local/bin/web", "say", "hello from exec")
	require.NoError(k.t, err, out)
	require.Contains(k.t, out, "hello from exec")
	p.followsLogsAndForwards(pod)

	viewer := k.asPerson("--as", "viewer")
	out, err = viewer.kubectl("get", "pods")
	require.NoError(k.t, err, out)
	out, err = viewer.kubectl("exec", pod, "--", "/usr/local/bin/web", "say", "hello")
	require.Error(k.t, err)
	require.Contains(k.t, strings.ToLower(out), "forbidden", "who may look does not get in")
	k.t.Log(strings.TrimSpace(out))
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:[0-9]+)`)

func (p *person) followsLogsAndForwards(pod string) {
	t := p.k.t
	t.Helper()
	ctx, cancel := context.WithTimeout(p.k.ctx, patience)
	defer cancel()
	logs := p.starts(ctx, "logs", "-f", "--tail=1", pod)
	forward := p.starts(ctx, "port-forward", "pod/"+pod, ":8080")
	address := p.line(forward, forwarding)
	client := http.Client{Timeout: 20 * time.Second}
	response, err := client.Get("http://" + address + "/through-the-platform")
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "hello from pod "+pod+"\n", string(body))
	t.Logf("through the platform's endpoint: %s", strings.TrimSpace(string(body)))
	t.Logf("its log, followed: request GET %s", p.line(logs, regexp.MustCompile(`request GET (/through-the-platform)`)))
}

// starts runs kubectl until the context ends, and returns what it prints.
func (p *person) starts(ctx context.Context, args ...string) *bufio.Scanner {
	p.k.t.Helper()
	command := p.command(ctx, filepath.Join(p.dir, "kubectl"), args...)
	out, err := command.StdoutPipe()
	require.NoError(p.k.t, err)
	command.Stderr = p.k.t.Output()
	require.NoError(p.k.t, command.Start())
	p.k.t.Cleanup(func() { _ = command.Wait() })
	return bufio.NewScanner(out)
}

// line reads until a line matches, and returns what its first group has.
func (p *person) line(from *bufio.Scanner, wanted *regexp.Regexp) string {
	p.k.t.Helper()
	for from.Scan() {
		if found := wanted.FindStringSubmatch(from.Text()); found != nil {
			return found[1]
		}
	}
	p.k.t.Fatalf("no line has %s", wanted)
	return ""
}
