//go:build unix

package reach

import (
	"os/exec"
	"syscall"
)

// detach has a program outlive the terminal that it was started from.
func detach(started *exec.Cmd) { started.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
