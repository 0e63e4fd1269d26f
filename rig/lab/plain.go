package lab

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// NewPlain makes a node without root: a process tree on this machine, with its network and its files. Everything it
// starts, and what that leaves behind, ends with Kill or with the lab process.
func NewPlain(name string) (*Node, error) {
	if !hostnamePattern.MatchString(name) {
		return nil, fmt.Errorf("lab: Name %q is not a host name", name)
	}
	// SIGTERM, unlike SIGKILL, lets the init end its descendants when the lab dies.
	c, err := startInit("plain", os.Environ(), 0, syscall.SIGTERM)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	node := &Node{name: name, control: c}
	if _, err := c.ask(request{Setup: &setup{Plain: true}}); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", name, err), node.Kill())
	}
	return node, nil
}
