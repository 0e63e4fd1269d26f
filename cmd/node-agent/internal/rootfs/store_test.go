package rootfs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
)

// node is a small node with what must not be in a root beside what must.
func node(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"usr/bin/tool": "tool", "usr/lib/secret": "closed", "etc/services": "tcp", "etc/ssh/ssh_host_rsa_key": "key",
		"etc/profile.d/proxy.sh": "export http_proxy=http://me:hunter2@proxy:3128\n",
		"etc/ssl/certs/own.pem":  "-----BEGIN PRIVATE KEY-----\n",
		"etc/unknown":            "not on the list",
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n" +
			"nobody:x:65534:65534::/:/bin/false\n",
		"etc/shadow":                       "root:$6$hash:1::::::\n",
		"etc/group":                        "root:x:0:ada\nada:x:1000:\n",
		"var/lib/agent/credential":         "credential",
		"var/lib/cloud/instance/user-data": "data",
		"root/.ssh/id":                     "key",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "usr/lib/secret"), 0o600))
	require.NoError(t, os.Symlink("usr/bin", filepath.Join(dir, "bin")))
	return dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(raw)
}

func TestARootHoldsProgramsAndNoSecretOfTheNode(t *testing.T) {
	t.Parallel()
	from := node(t)
	version, err := rootfs.Store{Dir: t.TempDir(), Node: from}.Current()
	require.NoError(t, err)
	defer version.Close()
	require.Equal(t, "tool", read(t, version.Path, "bin/tool"))
	require.Equal(t, "tcp", read(t, version.Path, "etc/services"))
	for _, absent := range []string{
		"usr/lib/secret", "etc/ssh/ssh_host_rsa_key", "etc/profile.d/proxy.sh", "etc/ssl/certs/own.pem", "etc/unknown",
		"var/lib/agent",
		"var/lib/cloud", "root/.ssh",
	} {
		require.NoFileExists(t, filepath.Join(version.Path, absent))
		require.NoDirExists(t, filepath.Join(version.Path, absent))
	}
	require.NotContains(t, read(t, version.Path, "etc/passwd"), "ada")
	require.NotContains(t, read(t, version.Path, "etc/group"), "ada")
	for line := range strings.Lines(read(t, version.Path, "etc/shadow")) {
		require.Equal(t, "*", strings.Split(line, ":")[1])
	}
}

func TestWhatTheNodeGetsLaterIsInTheNextVersionOnly(t *testing.T) {
	t.Parallel()
	from := node(t)
	store := rootfs.Store{Dir: t.TempDir(), Node: from}
	old, err := store.Current()
	require.NoError(t, err)
	same, err := store.Current()
	require.NoError(t, err)
	require.Equal(t, old.Name, same.Name)
	same.Close()
	require.NoError(t, os.WriteFile(filepath.Join(from, "usr/bin/later"), []byte("later"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "usr/bin/tool"), []byte("changed in place"), 0o755))
	next, err := store.Current()
	require.NoError(t, err)
	require.NotEqual(t, old.Name, next.Name)
	require.NoFileExists(t, filepath.Join(old.Path, "usr/bin/later"))
	require.Equal(t, "tool", read(t, old.Path, "usr/bin/tool"))
	require.Equal(t, "changed in place", read(t, next.Path, "usr/bin/tool"))

	unused := func(name string) bool { return name == next.Name }
	require.NoError(t, store.Prune(unused))
	require.DirExists(t, old.Path, "a process has it")
	old.Close()
	require.NoError(t, store.Prune(unused))
	require.NoDirExists(t, old.Path)
	require.DirExists(t, next.Path)
	next.Close()
}
