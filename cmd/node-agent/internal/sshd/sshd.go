// Package sshd is the SSH server that an agent runs for members, which need none of their own. It serves connections
// that the platform opens over the agent's tunnel for a caller whom the platform has let in. It admits only that
// caller, by a certificate of the platform's authority. Its host key lives in memory; the platform signs it again for
// each connection.
//
//	ssh ── platform ── tunnel ── this ──▶ the member's init: shells, commands, files
//	                                └───▶ ports of the member itself
//
// Commands run as those of `appctl exec` do, and end with the connection. Nothing listens on the node.
package sshd

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

const (
	// loginPatience is how long somebody may take to log in.
	loginPatience = 30 * time.Second
	// maxTries is how many keys they may try.
	maxTries = 6
	// maxChannels is how many shells, commands and ports one connection may have open.
	maxChannels = 64
)

// Members finds the way to a member.
type Members interface {
	Reach(memberID string) (sandbox.Way, error)
	Lookup(ctx context.Context, memberID string) (*sandbox.Client, error)
}

// Server serves connections.
type Server struct {
	members Members
	key     ssh.Signer
}

// New returns a server with a host key of its own.
func New(members Members) (*Server, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a host key: %w", err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, fmt.Errorf("create a host key: %w", err)
	}
	return &Server{members: members, key: key}, nil
}

// Serve serves one connection to a member, until either side ends it.
func (s *Server) Serve(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var wanted tunnel.SSH
	if err := json.Unmarshal(open.Spec, &wanted); err != nil || wanted.Principal == "" {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a login must name who may log in"}
	}
	checker, err := newChecker(wanted)
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: err.Error()}
	}
	member, err := s.members.Lookup(ctx, open.MemberID)
	if err == nil && member == nil {
		err = errors.New("the member has no sandbox on this node")
	}
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: err.Error()}
	}
	if err := stream.Granted(); err != nil {
		return err
	}
	host, err := s.certified(stream)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{MaxAuthTries: maxTries, ServerVersion: "SSH-2.0-app-platform",
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions,
			error) {
			return checker.check(key)
		}}
	config.AddHostKey(host)
	return s.login(ctx, stream, config, &session{server: s, id: open.MemberID, member: member})
}

// certified returns the host key with the certificate that the platform signs for it.
func (s *Server) certified(stream net.Conn) (ssh.Signer, error) {
	line, err := tunnel.OfferHostKey(stream, string(ssh.MarshalAuthorizedKey(s.key.PublicKey())))
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("read the host's certificate: %w", err)
	}
	certificate, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("the platform's answer is not a certificate")
	}
	return ssh.NewCertSigner(certificate, s.key)
}

// login lets the caller in and serves what they open.
func (s *Server) login(ctx context.Context, stream net.Conn, config *ssh.ServerConfig, of *session) error {
	_ = stream.SetDeadline(time.Now().Add(loginPatience))
	conn, channels, requests, err := ssh.NewServerConn(stream, config)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := stream.SetDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_ = conn.Wait()
		cancel()
	}()
	of.user = conn.User()
	go ssh.DiscardRequests(requests)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	slots := make(chan struct{}, maxChannels)
	for each := range channels {
		select {
		case slots <- struct{}{}:
		default:
			_ = each.Reject(ssh.ResourceShortage, fmt.Sprintf("at most %d channels at a time", maxChannels))
			continue
		}
		open.Go(func() {
			defer func() { <-slots }()
			of.channel(ctx, each)
		})
	}
	return nil
}

// checker checks the certificate of a client that logs in.
type checker struct {
	certificates ssh.CertChecker
	authorities  [][]byte
	principal    string
}

// newChecker reads what the platform expects.
func newChecker(wanted tunnel.SSH) (*checker, error) {
	c := &checker{principal: wanted.Principal}
	for _, line := range wanted.Authorities {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("read the key of an authority: %w", err)
		}
		c.authorities = append(c.authorities, key.Marshal())
	}
	began, at := time.Now(), time.Unix(wanted.At, 0)
	// the platform's: a node's may be wrong
	c.certificates.Clock = func() time.Time { return at.Add(time.Since(began)) }
	return c, nil
}

// check lets in who shows a certificate of the caller at this instance.
func (c *checker) check(key ssh.PublicKey) (*ssh.Permissions, error) {
	certificate, ok := key.(*ssh.Certificate)
	switch {
	case !ok:
		return nil, errors.New("the key has no certificate of the platform")
	case certificate.CertType != ssh.UserCert:
		return nil, errors.New("the certificate is not one of a person")
	case !slices.ContainsFunc(c.authorities, func(known []byte) bool {
		return string(known) == string(certificate.SignatureKey.Marshal())
	}):
		return nil, errors.New("another authority has signed the certificate")
	case !slices.Contains(certificate.ValidPrincipals, c.principal): // one that names nobody is good for nobody
		return nil, errors.New("the certificate is for another person, or for another instance")
	}
	if err := c.certificates.CheckCert(c.principal, certificate); err != nil {
		return nil, err
	}
	return &certificate.Permissions, nil
}
