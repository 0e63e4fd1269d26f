//go:build !unix

package reach

import "os/exec"

// detach does nothing where programs have no sessions.
func detach(*exec.Cmd) {}
