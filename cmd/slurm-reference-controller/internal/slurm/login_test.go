package slurm

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/mend"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// authorities are the platform's two, in a test.
type authorities struct {
	t             *testing.T
	people, hosts ssh.Signer
	asked         int
}

func newAuthorities(t *testing.T) *authorities {
	t.Helper()
	return &authorities{t: t, people: newSigner(t), hosts: newSigner(t)}
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return signer
}

func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }

// sign returns a certificate as a line.
func (a *authorities) sign(by ssh.Signer, kind uint32, key ssh.PublicKey, principals ...string) string {
	certificate := &ssh.Certificate{Key: key, CertType: kind, ValidPrincipals: principals,
		ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", "permit-port-forwarding": ""}}}
	require.NoError(a.t, certificate.SignCert(rand.Reader, by))
	return line(certificate)
}

// issue answers issueSshHostCertificate as the platform does.
func (a *authorities) issue(instance string) func(json.RawMessage) (map[string]any, error) {
	return func(raw json.RawMessage) (map[string]any, error) {
		var input struct{ MemberID, PublicKey string }
		require.NoError(a.t, json.Unmarshal(raw, &input))
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(input.PublicKey))
		require.NoError(a.t, err)
		a.asked++
		return map[string]any{
			"certificate": a.sign(a.hosts, ssh.HostCert, key, input.MemberID, instance),
			"principals":  []string{instance},
			"expiresAt":   time.Now().Add(time.Hour), "peopleAuthorities": []string{line(a.people.PublicKey())},
			"endpointPrincipals": []string{"login." + instance},
		}, nil
	}
}

// visitor is somebody with a certificate, and an ssh of this machine.
type visitor struct {
	t       *testing.T
	options []string
	address string
	key     string // the public one
}

func (a *authorities) visitor(address, instance, person string) visitor {
	dir := a.t.TempDir()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(a.t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(a.t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(a.t, err)
	at := "login." + instance
	for name, text := range map[string]string{
		"key": string(pem.EncodeToMemory(block)), "known": "@cert-authority * " + line(a.hosts.PublicKey()) + "\n",
		"key-cert.pub": a.sign(a.people, ssh.UserCert, signer.PublicKey(), person+"@"+at, at) + "\n",
	} {
		require.NoError(a.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return visitor{t: a.t, address: address, key: line(signer.PublicKey()), options: []string{
		"-F", "none", "-o", "BatchMode=yes", "-o", "HostKeyAlias=" + instance, "-o", "StrictHostKeyChecking=yes",
		"-o", "UserKnownHostsFile=" + filepath.Join(dir, "known"), "-o", "IdentitiesOnly=yes", "-o",
		"IdentityAgent=none",
		"-i", filepath.Join(dir, "key"), "-o", "CertificateFile=" + filepath.Join(dir, "key-cert.pub")}}
}

// run runs a command on the login as an account, by ssh or by another program of its family.
func (v visitor) run(program, port string, words ...string) (string, error) {
	ctx := v.t.Context()
	arguments := append(append([]string{}, v.options...), port, "2222")
	out, err := exec.CommandContext(ctx, program, append(arguments, words...)...).CombinedOutput()
	return string(out), err
}

func (v visitor) says(account, command string) string {
	v.t.Helper()
	out, err := v.run("ssh", "-p", account+"@"+v.address, command)
	require.NoError(v.t, err, "%s", out)
	return out
}

func (v visitor) isTurnedAway(account string) {
	v.t.Helper()
	out, err := v.run("ssh", "-p", account+"@"+v.address, "id")
	require.Error(v.t, err, "%s", out)
	require.Contains(v.t, out, "Permission denied (publickey)")
}

// loginBench is a cluster with a login. One test has it: its port is one of this machine.
func loginBench(t *testing.T) (*bench, *authorities) {
	t.Helper()
	adaptertest.Require(t, "sshd", "ssh", "scp")
	b, platform := prepareBench(t, "ins_login", 1), newAuthorities(t)
	b.p.Answers("issueSshHostCertificate", platform.issue("ins_login"))
	b.current.Members = append(b.current.Members, b.login(0))
	b.succeeds(b.p.Run(b.base, b.current, patience))
	return b, platform
}

// login returns a login on a node of its own.
func (b *bench) login(index int) adapter.Member {
	member := b.member(index)
	member.ID, member.ComponentKey = "mem_login"+string(rune('a'+index)), layout.ComponentLogin
	return member
}

func TestPeopleLogInAndWorkWithSlurmsOwnCommands(t *testing.T) {
	t.Parallel()
	b, platform := loginBench(t)
	var account struct{ User, Home string }
	b.does(alice, "ssh.account", nil, &account)
	require.Equal(t, "alice", account.User)
	b.does(bob, "ssh.account", nil, &account)
	a := platform.visitor(b.address, "ins_login", alice.ID)
	t.Run("who is let in", func(t *testing.T) { onlyTheirOwnAccountsOpen(t, b, platform, a) })
	t.Run("commands", func(t *testing.T) { slurmsCommandsWork(t, b, a) })
	t.Run("members", func(t *testing.T) { loginsComeAndGo(t, b, a) })
	t.Run("certificates", func(t *testing.T) { loginsAreKeptCertified(t, b, platform) })
	b.run(adapter.InstanceDecommission, nil)
}

func onlyTheirOwnAccountsOpen(t *testing.T, b *bench, platform *authorities, a visitor) {
	require.Equal(t, "alice 1004 /home/alice\n", a.says("alice", `echo $(id -un) $(id -u) $HOME`))
	a.isTurnedAway(bob.Posix.Name)
	a.isTurnedAway("root")
	a.isTurnedAway("nobody")
	platform.visitor(b.address, "ins_login", "usr_carol").isTurnedAway("alice")
	platform.visitor(b.address, "ins_other", alice.ID).isTurnedAwayOf(platform, "ins_login")
	foreign := newAuthorities(t).visitor(b.address, "ins_login", alice.ID)
	a.says("alice", "mkdir -m 0700 .ssh; echo '"+foreign.key+"' > .ssh/authorized_keys")
	foreign.isTurnedAwayOf(platform, "ins_login") // also not by a key that is left there
	out, err := a.run("ssh", "-p", "-tt", "alice@"+b.address, "tty")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "/dev/pts/", "a terminal")
	require.Equal(t, http422(b, adapter.Requester{ID: "op_1", Kind: "operations"}), "NO_ACCOUNT")
}

// http422 returns the code by which ssh.account refuses somebody.
func http422(b *bench, who adapter.Requester) string {
	_, raw := b.tries(who, "ssh.account", nil)
	var refused adapter.ErrorBody
	require.NoError(b.t, json.Unmarshal(raw, &refused))
	return refused.Code
}

// isTurnedAwayOf knows the hosts of this platform, and comes with what another place has signed.
func (v visitor) isTurnedAwayOf(platform *authorities, instance string) {
	v.t.Helper()
	known := filepath.Join(v.t.TempDir(), "known")
	require.NoError(v.t, os.WriteFile(known, []byte("@cert-authority * "+line(platform.hosts.PublicKey())+"\n"), 0o600))
	v.options = append([]string{"-o", "UserKnownHostsFile=" + known, "-o", "HostKeyAlias=" + instance}, v.options...)
	v.isTurnedAway("alice")
}

func slurmsCommandsWork(t *testing.T, b *bench, a visitor) {
	require.Contains(t, a.says("alice", "sinfo -h -o %P"), "batch")
	require.Equal(t, "alice w0\n", a.says("alice", `srun sh -c 'echo $(id -un) $SLURMD_NODENAME'`))
	out, err := a.run("ssh", "-p", "-tt", "alice@"+b.address, "srun --pty sh -c 'tty; echo size $(stty size)'")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "/dev/pts/", "a terminal on the worker: %s", out)
	id := strings.TrimSpace(a.says("alice", `printf '#!/bin/sh\nid -un\n' > job.sh; sbatch --parsable job.sh`))
	require.Equal(t, "alice\n", b.reads(alice, "job.output", id, "COMPLETED"), "as of a job by the platform")
	require.Eventually(t, func() bool {
		return a.says("alice", "sacct -X -n -P -o JobID,User,Account,State -j "+id) == id+"|alice|prj_1|COMPLETED\n"
	}, patience, 300*time.Millisecond)
	other := b.submits(bob, longJob)
	out, err = a.run("ssh", "-p", "alice@"+b.address, "scancel "+other)
	require.Error(t, err)
	require.Contains(t, out, "Access/permission denied")
	b.end(other)

	file := filepath.Join(t.TempDir(), "copied")
	require.NoError(t, os.WriteFile(file, []byte("by scp\n"), 0o600))
	out, err = a.run("scp", "-P", file, "alice@"+b.address+":there")
	require.NoError(t, err, "%s", out)
	require.Equal(t, "by scp\n", a.says("alice", "cat there"))
}

// loginsAreKeptCertified has the platform sign with another authority, as after a rotation, and starts the adapter
// again, which otherwise would not request the authorities so soon.
func loginsAreKeptCertified(t *testing.T, b *bench, platform *authorities) {
	b.does(alice, "ssh.account", nil, &struct{}{})
	asked := platform.asked
	b.does(alice, "ssh.account", nil, &struct{}{})
	require.Equal(t, asked, platform.asked, "it has asked just now")
	before := b.on("mem_loginb", "cat /etc/ssh/host_key-cert.pub")
	platform.people = newSigner(t)
	rotated := platform.visitor(b.address, "ins_login", alice.ID)
	rotated.isTurnedAway("alice")
	restarted(b)
	b.does(alice, "ssh.account", nil, &struct{}{})
	require.Equal(t, "alice\n", rotated.says("alice", "id -un"))
	require.Equal(t, before, b.on("mem_loginb", "cat /etc/ssh/host_key-cert.pub"), "a certificate of 30 days stays")
	b.on("mem_loginb", "touch -d '16 days ago' /etc/ssh/host_key-cert.pub")
	restarted(b)
	b.does(alice, "ssh.account", nil, &struct{}{})
	require.NotEqual(t, before, b.on("mem_loginb", "cat /etc/ssh/host_key-cert.pub"), "one of half its time is renewed")
	require.Eventually(t, func() bool {
		out, err := rotated.run("ssh", "-p", "alice@"+b.address, "id -un")
		return err == nil && out == "alice\n"
	}, patience, 100*time.Millisecond)
}

func loginsComeAndGo(t *testing.T, b *bench, a visitor) {
	seen := b.observe()
	require.Equal(t, adapter.Healthy, seen.Health, seen.Message)
	require.Equal(t, "1 of 1 accept connections", seen.Roles[2].Summary)
	b.p.KillProcess("mem_logina", "sshd")
	seen = b.observe()
	require.Equal(t, adapter.Degraded, seen.Health)
	require.Equal(t, adapter.Unhealthy, seen.Members[2].Health)
	b.run(adapter.MemberRecover, nil, "mem_logina")
	require.Equal(t, adapter.Healthy, b.observe().Health)

	status := b.run(adapter.MemberDrain, nil, "mem_logina")
	require.Equal(t, adapter.MemberDrained, statuses(status)["mem_logina"])
	b.run(adapter.MemberUncordon, nil, "mem_logina")
	running := b.submits(alice, longJob)
	b.job(running, "RUNNING")
	b.run(adapter.MemberRemove, nil, "mem_logina")
	b.forget("mem_logina")
	b.job(running, "RUNNING")
	require.Equal(t, "NO_LOGIN", http422(b, alice))

	b.current.Members = append(b.current.Members, b.login(1))
	b.run(adapter.MembersAdd, adapter.AddChange{Components: []adapter.ComponentCount{
		{Key: layout.ComponentLogin, Count: 1}}}, "mem_loginb")
	require.Equal(t, "alice\n", a.says("alice", "id -un"), "it knows all whom the cluster has met")
	b.job(running, "RUNNING")
	b.end(running)
}

// restarted starts the adapter again, with nothing in its memory.
func restarted(b *bench) {
	b.t.Helper()
	app, err := App(readManifest(b.t), b.dir, mend.New())
	require.NoError(b.t, err)
	b.base = b.p.Start(app)
}
