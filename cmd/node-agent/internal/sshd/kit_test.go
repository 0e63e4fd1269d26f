package sshd_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/rootfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sshd"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/tunnel/tunneltest"
)

const (
	memberID   = "mem_0000000000000000000sshd00"
	instanceID = "ins_0000000000000000000sshd00"
	principal  = "usr_ada@" + instanceID
	alias      = "worker.0." + instanceID
)

// testRoots is where versions of the curated root are kept from one run of tests to the next.
const testRoots = "/var/cache/app-platform/member-roots"

var testRoot string

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	if os.Geteuid() == 0 {
		version, err := rootfs.Store{Dir: testRoots, Link: true}.Current()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		testRoot = version.Path
	}
	os.Exit(m.Run())
}

// authority signs certificates.
type authority struct{ ssh.Signer }

func newAuthority(t *testing.T) authority { return authority{newSigner(t, "")} }

// newSigner makes a key, and keeps it in a file if one is named.
func newSigner(t *testing.T, file string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	if file != "" {
		block, err := ssh.MarshalPrivateKey(private, "")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer
}

func (a authority) line() string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(a.PublicKey())))
}

// sign signs a certificate that ends after life.
func (a authority) sign(t *testing.T, key ssh.PublicKey, kind uint32, life time.Duration, names ...string) string {
	t.Helper()
	certificate := &ssh.Certificate{Key: key, CertType: kind, ValidPrincipals: names, KeyId: "test",
		ValidAfter:  uint64(time.Now().Add(-time.Hour).Unix()),
		ValidBefore: uint64(time.Now().Add(life).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}}}
	require.NoError(t, certificate.SignCert(rand.Reader, a))
	return string(ssh.MarshalAuthorizedKey(certificate))
}

// rig is a member, the server of its node's agent, and the platform between that and a client of a port.
type rig struct {
	t             *testing.T
	dir           string // of the client
	key           ssh.PublicKey
	people, hosts authority
	hostNames     []string // in the certificate of the host
	hostBy        authority
	address       string
	platform      *tunnel.Session
	member        *sandbox.Client
	manager       *sandbox.Manager
}

// setup begins a rig whose client would be let in.
func setup(t *testing.T, process bool) *rig {
	t.Helper()
	for _, program := range []string{"ssh", "scp", "sftp"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "%s is wanted: install openssh-client", program)
	}
	r := &rig{t: t, dir: t.TempDir(), people: newAuthority(t), hosts: newAuthority(t),
		hostNames: []string{memberID, alias}}
	r.hostBy = r.hosts
	r.key = newSigner(t, filepath.Join(r.dir, "id")).PublicKey()
	r.certify(r.people.sign(t, r.key, ssh.UserCert, time.Minute, principal))
	r.write("known_hosts", "@cert-authority mem_*,*."+instanceID+" "+r.hosts.line()+"\n")
	var err error
	r.manager, err = sandbox.NewManager(t.Context(),
		sandbox.Options{StateDir: t.TempDir(), ForceProcess: process || os.Geteuid() != 0,
			Root: testRoot, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := r.manager.Teardown(context.Background(), memberID)
		require.NoError(t, err)
	})
	r.member, err = r.manager.Ensure(t.Context(), sandbox.Member{ID: memberID, InstanceID: instanceID})
	require.NoError(t, err)
	r.serve()
	return r
}

// serve plays agent and platform.
func (r *rig) serve() {
	server, err := sshd.New(r.manager)
	require.NoError(r.t, err)
	var agent *tunnel.Session
	r.platform, agent = tunneltest.Pair(r.t)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- agent.Serve(ctx, server.Serve) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	r.address = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(conn)
		}
	}()
	r.t.Cleanup(func() {
		_ = listener.Close()
		stop()
		<-served
		_ = r.platform.Close()
	})
}

// pass is what the platform does of a connection.
func (r *rig) pass(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	stream, err := r.open(memberID)
	if err != nil {
		return
	}
	tunnel.Join(conn, stream)
}

// open opens the server of a member, and signs its host key.
func (r *rig) open(member string) (net.Conn, error) {
	spec, err := json.Marshal(tunnel.SSH{Authorities: []string{newAuthority(r.t).line(), r.people.line()},
		Principal: principal,
		At:        time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	stream, err := r.platform.Open(context.Background(), tunnel.Open{Kind: tunnel.KindSSH, MemberID: member,
		Spec: spec})
	if err != nil {
		return nil, err
	}
	return stream, tunnel.CertifyHost(context.Background(), stream, func(text string) (string, error) {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return "", err
		}
		return r.hostBy.sign(r.t, key, ssh.HostCert, time.Minute, r.hostNames...), nil
	})
}

func (r *rig) write(name, text string) {
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// certify gives the client a certificate.
func (r *rig) certify(line string) { r.write("id-cert.pub", line) }

// options returns the options of each of OpenSSH's programs.
func (r *rig) options() []string {
	_, port, err := net.SplitHostPort(r.address)
	require.NoError(r.t, err)
	var all []string
	for _, option := range []string{"Port=" + port, "HostName=127.0.0.1", "HostKeyAlias=" + alias,
		"IdentityFile=" + filepath.Join(r.dir, "id"), "CertificateFile=" + filepath.Join(r.dir, "id-cert.pub"),
		"IdentitiesOnly=yes", "IdentityAgent=none", "UserKnownHostsFile=" + filepath.Join(r.dir, "known_hosts"),
		"GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes", "BatchMode=yes", "LogLevel=ERROR"} {
		all = append(all, "-o", option)
	}
	return append([]string{"-F", "none"}, all...)
}

// run runs one of OpenSSH's programs.
func (r *rig) run(program, input string, args ...string) (out, complaint string, code int) {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), program, append(r.options(), args...)...)
	command.Stdin = bytes.NewBufferString(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		require.NoError(r.t, err)
	}
	return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

// running counts the processes of the member with a word in their command line.
func running(t *testing.T, word string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	count := 0
	for _, file := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		text, _ := os.ReadFile(file)
		if err == nil && pid != os.Getpid() && bytes.Contains(text, []byte(word)) &&
			bytes.HasPrefix(text, []byte("sleep")) {
			count++
		}
	}
	return count
}
