package sandbox

import (
	"context"
	"errors"
	"net"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
)

// Way is how something of the node gets to what listens in a member.
type Way struct {
	// Dial connects from where the member is.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Address is the member's own; empty where it has the node's.
	Address string
}

// Reach returns the way to a member: from inside its own network where it has one, so that nothing is reached in its
// name that it does not reach itself. A member with a network of its own must be there. A plain process has its node's
// ports, which could be another tenant's: on a whole node they are its tenant's, and the way has the node's address.
func (m *Manager) Reach(memberID string) (Way, error) {
	dir, err := m.memberDir(memberID)
	if err != nil {
		return Way{}, err
	}
	known := roster.Read(dir)
	switch {
	case known != nil && known.Mode == memberinit.ModeProcess && known.Class == ClassWholeNode && known.Alive():
		return Way{Dial: new(net.Dialer).DialContext, Address: m.options.Address}, nil
	case m.options.Network == nil || m.Isolation().Mode == memberinit.ModeProcess,
		known != nil && known.Alive() && known.Mode != memberinit.ModeContainer:
		return Way{Dial: new(net.Dialer).DialContext}, nil
	case known == nil:
		return Way{}, errors.New("the member has no sandbox on this node")
	case !known.Alive():
		return Way{}, errors.New("the member's init has ended")
	}
	return Way{Address: m.options.Network.Address(memberID),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return m.options.Network.Dial(ctx, known.InitPID, network, address)
		}}, nil
}
