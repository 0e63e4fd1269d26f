package sshd_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// bothModes runs a test with a container, where root allows it, and with plain processes.
func bothModes(t *testing.T, test func(*rig)) {
	t.Helper()
	for name, process := range map[string]bool{"container": false, "process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !process && os.Geteuid() != 0 {
				t.Skip("containers need root")
			}
			test(setup(t, process))
		})
	}
}

// The system's own ssh works in a member, without a server in it.
func TestTheSystemsSSHWorksInAMember(t *testing.T) {
	t.Parallel()
	bothModes(t, func(r *rig) {
		out, complaint, code := r.run("ssh", "typed\n", "root@member",
			`echo in $GPUAAS_MEMBER_ID; read line; echo "got $line"; echo oops >&2; exit 7`)
		require.Equal(r.t, "in "+memberID+"\ngot typed\n", out, complaint)
		require.Equal(r.t, "oops\n", complaint)
		require.Equal(r.t, 7, code)
		out, complaint, code = r.run("ssh", "echo $0; tty; exit 4\n", "-tt", "root@member")
		require.Equal(r.t, 4, code, complaint)
		require.Regexp(r.t, `(?s)-\w*sh.*/dev/pts/`, out)
		_, complaint, code = r.run("ssh", "", "nobody-here@member", "true")
		require.Equal(r.t, 127, code)
		require.Contains(r.t, complaint, `no user "nobody-here" in the member`)
		_, complaint, code = r.run("ssh", "", "-W", "127.0.0.1:22", "root@member")
		require.NotZero(r.t, code)
		require.Contains(r.t, complaint, "forwarding failed")
	})
}

// The system's own scp and sftp copy files, as the user who logs in.
func TestTheSystemsSCPCopiesFiles(t *testing.T) {
	t.Parallel()
	bothModes(t, func(r *rig) {
		content := strings.Repeat("line\n", 100_000)
		r.write("up", content)
		up, down := filepath.Join(r.dir, "up"), filepath.Join(r.dir, "down")
		_, complaint, code := r.run("scp", "", up, "root@member:copied")
		require.Zero(r.t, code, complaint)
		out, complaint, code := r.run("ssh", "", "root@member", "wc -l < copied")
		require.Zero(r.t, code, complaint)
		require.Equal(r.t, "100000", strings.TrimSpace(out))
		_, complaint, code = r.run("scp", "", "root@member:copied", down)
		require.Zero(r.t, code, complaint)
		read, err := os.ReadFile(down)
		require.NoError(r.t, err)
		require.Equal(r.t, content, string(read))
		out, complaint, code = r.run("sftp", "mkdir made\nrename copied made/moved\nls made\n", "-b", "-",
			"root@member")
		require.Zero(r.t, code, complaint)
		require.Contains(r.t, out, "made/moved")
		_, complaint, code = r.run("scp", "", "root@member:not-there", down)
		require.NotZero(r.t, code)
		require.Contains(r.t, complaint, "No such file")
	})
}

// Nobody is let in but by a certificate of the caller for this instance.
func TestNobodyElseIsLetIn(t *testing.T) {
	t.Parallel()
	r := setup(t, true)
	for name, line := range map[string]string{
		"another tenant's person":        r.people.sign(t, r.key, ssh.UserCert, time.Minute, "usr_eve@"+instanceID),
		"the person at another instance": r.people.sign(t, r.key, ssh.UserCert, time.Minute, "usr_ada@ins_other"),
		"a bare login name":              r.people.sign(t, r.key, ssh.UserCert, time.Minute, "root"),
		"one that names nobody":          r.people.sign(t, r.key, ssh.UserCert, time.Minute),
		"one that has expired":           r.people.sign(t, r.key, ssh.UserCert, -time.Second, principal),
		"one of a host":                  r.people.sign(t, r.key, ssh.HostCert, time.Minute, principal),
		"one by the hosts' authority":    r.hosts.sign(t, r.key, ssh.UserCert, time.Minute, principal),
		"one by a stranger":              newAuthority(t).sign(t, r.key, ssh.UserCert, time.Minute, principal),
		"a key without a certificate":    "",
	} {
		r.certify(line)
		out, complaint, code := r.run("ssh", "", "root@member", "echo in > "+filepath.Join(r.dir, "entered"))
		require.Equal(t, 255, code, name)
		require.Empty(t, out, name)
		require.Contains(t, complaint, "Permission denied (publickey)", name)
		require.NoFileExists(t, filepath.Join(r.dir, "entered"), name)
	}
	r.certify(r.people.sign(t, r.key, ssh.UserCert, time.Minute, principal))
	_, complaint, code := r.run("ssh", "", "root@member", "true")
	require.Zero(t, code, complaint)
	_, err := r.open("mem_0000000000000000000absent")
	require.ErrorContains(t, err, "no sandbox on this node")
}

// A client refuses a host that shows anything but a certificate of the platform for the member that was meant.
func TestAFalseHostIsRefusedByTheClient(t *testing.T) {
	t.Parallel()
	r := setup(t, true)
	for name, falsify := range map[string]func(){
		"another authority": func() { r.hostBy = newAuthority(t) },
		"another member":    func() { r.hostNames = []string{"mem_other", "worker.1." + instanceID} },
		"another instance":  func() { r.hostNames = []string{"worker.0.ins_other"} },
	} {
		r.hostBy, r.hostNames = r.hosts, []string{memberID, alias}
		falsify()
		_, complaint, code := r.run("ssh", "", "root@member", "echo in > "+filepath.Join(r.dir, "entered"))
		require.Equal(t, 255, code, name)
		require.Contains(t, complaint, "Host key verification failed", name)
		require.NoFileExists(t, filepath.Join(r.dir, "entered"), name)
	}
}

// What somebody has begun ends with the connection, as the platform cuts it when the right ends.
func TestWhatWasBegunEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	r := setup(t, false)
	command := exec.CommandContext(t.Context(), "ssh",
		append(r.options(), "root@member", "setsid sleep 7911 & echo on; wait")...)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "on\n", line)
	require.Eventually(t, func() bool { return running(t, "7911") == 1 }, 15*time.Second, 10*time.Millisecond)
	require.NoError(t, r.platform.Close())
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, command.Wait())
	require.Equal(t, 255, command.ProcessState.ExitCode())
	require.Eventually(t, func() bool { return running(t, "7911") == 0 }, 15*time.Second, 10*time.Millisecond)
}
