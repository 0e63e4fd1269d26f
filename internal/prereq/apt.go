package prereq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	policyPath  = "/usr/sbin/policy-rc.d"
	policyMark  = "# app-platform: no service starts while packages are installed"
	clusterConf = "/etc/postgresql-common/createcluster.d/app-platform.conf"
	// bootConf is the file that cloud-init reads before it touches the machine that boots. Members do not read it.
	bootConf = "/etc/cloud/cloud-init.disabled"
)

// install brings the packages in without starting or creating anything, and takes its own settings for that away again.
func install(ctx context.Context, out io.Writer, lack Lack) (err error) {
	fmt.Fprintf(out, "installing %s: apt-get install %s\n", strings.Join(lack.What, ", "),
		strings.Join(lack.Packages, " "))
	restore, err := policy{policyPath}.hold(ctx)
	if err != nil {
		return fmt.Errorf("keep services from starting: %w", err)
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := writeClusterConf(); err != nil {
		return fmt.Errorf("keep PostgreSQL from creating a cluster: %w", err)
	}
	defer os.Remove(clusterConf)
	if slices.Contains(lack.Packages, "cloud-init") {
		if err := writeNew(bootConf, policyMark+"\n"); err != nil {
			return fmt.Errorf("keep cloud-init from the next boot of this machine: %w", err)
		}
	}
	// A package run that was killed earlier makes apt-get refuse everything until this is done.
	if err := run(ctx, "dpkg", "--configure", "-a"); err != nil {
		return err
	}
	if err := run(ctx, "apt-get", aptArgs("update")...); err != nil {
		return err
	}
	args := append(aptArgs("install"), "-y", "--no-install-recommends")
	return run(ctx, "apt-get", append(args, lack.Packages...)...)
}

func aptArgs(verb string) []string {
	return []string{
		verb, "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3",
		"-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Options::=--force-confdef",
	}
}

// run runs a package tool to its end. It is in a process group of its own, so that Ctrl-C at the terminal does not cut
// dpkg in the middle of a package; ctx asks it to end and waits.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "NEEDRESTART_MODE=l",
		"UCF_FORCE_CONFFOLD=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	output := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, bytes.TrimSpace(output.data))
	}
	return nil
}

// tailBuffer keeps the last 4 KiB written to it: how the output of a failed package run ends.
type tailBuffer struct{ data []byte }

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if extra := len(b.data) - 4096; extra > 0 {
		b.data = append(b.data[:0], b.data[extra:]...)
	}
	return len(p), nil
}

// policy is the place of Debian's policy-rc.d: a program that package scripts ask before they start a service.
type policy struct{ path string }

func (p policy) aside() string { return p.path + ".app-platform-saved" }

// hold puts a policy in place that forbids starting services, unless the machine's own forbids it already. The answered
// function puts the machine's policy back. One that a killed run left set aside is put right first.
func (p policy) hold(ctx context.Context) (restore func() error, err error) {
	if err := p.restore(); err != nil {
		return nil, err
	}
	if p.forbids(ctx) {
		return func() error { return nil }, nil
	}
	if err := os.Rename(p.path, p.aside()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	script := "#!/bin/sh\n" + policyMark + "\nexit 101\n"
	if err := writeProgram(p.path, script); err != nil {
		return nil, err
	}
	return p.restore, nil
}

// writeProgram writes a program that can be run at once: no process that is started meanwhile keeps the file open for
// writing, for which the system would refuse to run it as busy.
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755)
}

// restore removes our policy and puts back the one it stood in for. It does nothing when the machine's own is in place.
func (p policy) restore() error {
	data, err := os.ReadFile(p.path)
	ours := err == nil && bytes.Contains(data, []byte(policyMark))
	if err == nil && !ours {
		return nil
	}
	if ours {
		if err := os.Remove(p.path); err != nil {
			return err
		}
	}
	if err := os.Rename(p.aside(), p.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// forbids asks the policy in place, the way invoke-rc.d does.
func (p policy) forbids(ctx context.Context) bool {
	err := exec.CommandContext(ctx, p.path, "postgresql", "start").Run()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 101
}

func writeClusterConf() error { return writeNew(clusterConf, "create_main_cluster = false\n") }

func writeNew(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
