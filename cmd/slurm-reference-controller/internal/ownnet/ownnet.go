// Package ownnet runs a test program in a network namespace of its own, so that two programs whose tests start Slurm's
// daemons, which choose their ports by what listens, run side by side.
package ownnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
)

const (
	// entered is set in the environment of the program that is in its namespace.
	entered = "SLURM_TEST_OWN_NETWORK"
	// address is the machine's address for members and their controller. It is of RFC 5737's second block, which no
	// test of Slurm uses for an address that leads nowhere.
	address = "198.51.100.1/32"
)

// Tests are those of a program: a *testing.M.
type Tests interface{ Run() int }

// Run runs the tests and returns the code to exit with: as root in a namespace with lo and one address, and otherwise
// in the machine's own, since tests that start daemons skip there.
func Run(tests Tests) int {
	if os.Geteuid() != 0 {
		return tests.Run()
	}
	if os.Getenv(entered) == "" {
		return enter()
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests.Run()
}

// enter runs this program again in a new namespace. It ends with this process, also when that is killed.
func enter() int {
	runtime.LockOSThread() // the kernel counts the end of the thread as the parent's
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Args[0] = os.Args[0]
	again.Env = append(os.Environ(), entered+"=yes")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := again.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.Exited():
		return ended.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "run the tests in a network namespace of their own: %v\n", err)
	return 1
}

// prepare gives the new namespace what the tests need of a machine.
func prepare() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	at, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("read %s: %w", address, err)
	}
	if err := netlink.AddrAdd(lo, at); err != nil {
		return fmt.Errorf("give lo the address %s: %w", address, err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}
