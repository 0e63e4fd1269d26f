package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gpuaas/app-platform/internal/filelock"
)

// Supported says why this machine cannot run a lab; nil when it can.
func Supported(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("local nodes need root: namespaces, mounts and virtual network devices are root's")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("local nodes need ip(8) of package iproute2: %w", err)
	}
	network, err := New(ctx, Config{})
	if err != nil {
		return fmt.Errorf("this machine refuses network namespaces: %w", err)
	}
	node, err := network.AddNode(ctx, NodeConfig{Name: "probe", Bytes: 1 << 20})
	if err != nil {
		return errors.Join(fmt.Errorf("this machine refuses local nodes: %w", err), network.Close())
	}
	return errors.Join(node.Kill(), network.Close())
}

// Sweep removes what killed labs of this machine left: their folders and, should one have outlived its lab, the inits
// of their nodes. Live labs are recognised by their lock and left alone.
func Sweep() error {
	if _, err := os.Stat(stateRoot); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockState()
	if err != nil {
		return fmt.Errorf("sweep labs: %w", err)
	}
	defer lock.Release()
	entries, err := os.ReadDir(stateRoot)
	if err != nil {
		return fmt.Errorf("sweep labs: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		failed = append(failed, sweepOne(filepath.Join(stateRoot, entry.Name())))
	}
	return errors.Join(failed...)
}

func sweepOne(dir string) error {
	lock, err := filelock.Try(filepath.Join(dir, lockFileName), filelock.Exclusive)
	if errors.Is(err, filelock.ErrBusy) {
		return nil
	}
	// A lab that was killed while it removed its folder has no lock file any more.
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	defer lock.Release()
	for _, pid := range initsOf(dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}

// initsOf finds the inits of a lab by their command line.
func initsOf(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || string(data) != strings.Join([]string{initName, dir, ""}, "\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
