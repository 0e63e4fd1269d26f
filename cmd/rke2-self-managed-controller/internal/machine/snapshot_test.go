package machine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// TestAResetThatFailsPutsBackWhatItMovedAside runs the reset with a program that ends as the case says.
func TestAResetThatFailsPutsBackWhatItMovedAside(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		program, etcd string
		code          int
	}{
		"it ends well":             {"mv etcd etcd-old-2; mkdir etcd; echo new > etcd/db", "new\n", 0},
		"it fails at once":         {"exit 1", "held\n", EtcdKept},
		"it fails with etcd aside": {"mv etcd etcd-old-2; exit 1", "held\n", EtcdKept},
		"it fails in what it makes": {"mv etcd etcd-old-2; mkdir etcd; echo half > etcd/db; exit 1", "held\n",
			EtcdKept},
		"it was reset and fails after all": {
			"mv etcd etcd-old-2; mkdir etcd; echo new > etcd/db; touch reset-flag; exit 1", "new\n", 0},
		"it is killed": {"mv etcd etcd-old-2; kill -9 $$", "held\n", EtcdKept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, content := range map[string]string{databasePath + "/etcd/db": "held\n",
				databasePath + "/reset-flag": "", databasePath + "/etcd-old-1/db": "older\n",
				ConfigPath:            "server: \"https://x:9345\"\nnode-name: \"a\"\n",
				"/usr/local/bin/rke2": "#!/bin/sh\n" + one.program + "\n"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(root+path), 0o700))
				require.NoError(t, os.WriteFile(root+path, []byte(content), 0o700)) // #nosec G306 -- one is a program
			}
			words := Reset(adapter.Member{ComponentKey: Server}, Config{}, "night").Command
			command := exec.CommandContext(t.Context(), words[0], words[1:]...) // #nosec G204 -- of this package
			command.Env = append(os.Environ(), "GPUAAS_MEMBER_ROOT="+root)
			err := command.Run()
			code := 0
			var ended *exec.ExitError
			if errors.As(err, &ended) {
				code = ended.ExitCode()
			}
			require.Equal(t, one.code, code, "%v", err)
			held, err := os.ReadFile(root + databasePath + "/etcd/db")
			require.NoError(t, err)
			require.Equal(t, one.etcd, string(held))
			require.FileExists(t, root+databasePath+"/etcd-old-1/db")
			config, err := os.ReadFile(root + ConfigPath)
			require.NoError(t, err)
			require.Equal(t, "node-name: \"a\"\n", string(config))
		})
	}
}
