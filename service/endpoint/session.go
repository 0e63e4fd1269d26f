package endpoint

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// sessionAction is the verb's name in the audit.
const sessionAction = "sshMember"

// Session is a connection to the SSH server of a member.
type Session struct {
	// NodeID is where it is, and TenantID whose.
	NodeID, TenantID ids.ID
	// Open is what to ask the node's agent for.
	Open  tunnel.Open
	names []string
	now   time.Time
}

// Session accepts a connection to the SSH server that the node's agent runs for a member. It requires what Command
// requires; the client must then log in with a certificate of the same caller, for the same instance. The audit has the
// connection and its reason, and nothing of what passes.
//
// Faults: INVALID_ARGUMENT (reason), NOT_FOUND, FORBIDDEN, POLICY_DENIED (access: EXEC), FAILED_PRECONDITION when the
// member is on no node.
func (s *Service) Session(ctx context.Context, memberID ids.ID, reason string) (*Session, error) {
	wrong := &check.Input{}
	wrong.Text("reason", reason, leastReason, maxReason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	in, err := s.enter(ctx, memberID, sessionAction, reason, nil)
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(tunnel.SSH{Authorities: s.SSH.People(), At: in.now.Unix(),
		Principal: principals(in.actor.ID, "", in.instance.ID)[0]})
	if err != nil {
		return nil, err
	}
	return &Session{NodeID: *in.member.NodeID, TenantID: in.instance.TenantID, names: hostNames(in.member), now: in.now,
		Open: tunnel.Open{Kind: tunnel.KindSSH, MemberID: string(memberID), Spec: spec}}, nil
}

// HostKey signs the host key that the node's agent offers for a session: as this member's, for this connection.
func (s *Service) HostKey(session *Session, publicKey string) (string, error) {
	key, err := sshca.ParseKey(publicKey)
	if err != nil {
		return "", fault.New(fault.Unavailable, "the node's agent offers no host key: it %s", err)
	}
	line, _, err := s.SSH.SignHost(sshca.Certificate{Key: key, KeyID: session.Open.MemberID, Principals: session.names,
		Now: session.now, Until: session.now.Add(connectionLife)})
	return line, err
}
