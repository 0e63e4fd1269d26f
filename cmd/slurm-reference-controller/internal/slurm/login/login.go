// Package login sets up the SSH servers of a cluster's login members, by which people work in it with Slurm's own
// commands. A person with an account in the cluster logs in to it with a certificate of the platform's, and with
// nothing else: it has no passwords, no keys that people leave, and no root.
package login

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// Process is the name of the SSH server's process.
	Process = "sshd"
	// port is where it listens; the manifest's endpoint names it.
	port = "2222"
	// confFile is its configuration.
	confFile = "/etc/ssh/sshd_config"
	// hostKey is the server's key, which is created in the member and never leaves it.
	hostKey = "/etc/ssh/host_key"
	// authorities are the keys that sign people's certificates.
	authorities = "/etc/ssh/people_authorities"
)

// Requirements are the programs that a login needs beside those of a Slurm client.
func Requirements() []string { return []string{"sshd", "ssh-keygen"} }

// conf is the server's configuration. Slurm's commands ask slurmctld for slurm.conf each time, so that they always know
// the cluster's workers. Without PAM the only way in is the one that is written here.
const conf = `# Written by slurm-reference-controller.
Port ` + port + `
HostKey ` + hostKey + `
HostCertificate ` + hostKey + `-cert.pub
TrustedUserCAKeys ` + authorities + `
AuthorizedPrincipalsFile ` + layout.PrincipalsDir + `/%%u
AuthorizedKeysFile none
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
PermitUserEnvironment no
PermitUserRC no
UsePAM no
AllowAgentForwarding no
AllowTcpForwarding local
X11Forwarding no
PrintMotd no
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
SetEnv ` + layout.ConfServerName + `=%s
`

// Config returns the task that writes the configuration of a cluster's login.
func Config(cluster layout.Cluster) adapter.WriteFile {
	return adapter.WriteFile{Path: confFile, Mode: "0644", MakeDirs: true,
		Content: fmt.Sprintf(conf, cluster.ConfServer())}
}

// Dirs makes what the server wants to be there.
const Dirs = `install -d -m 0755 /etc/ssh ` + layout.PrincipalsDir + ` /run/sshd`

// Server returns the task that starts the server.
func Server() adapter.StartProcess {
	return adapter.StartProcess{
		Name: Process, Command: []string{"/usr/sbin/sshd", "-D", "-e", "-f", confFile},
		Restart:            adapter.Restart{Policy: "on_failure", MaxRestarts: 10, BackoffSeconds: 1},
		StopTimeoutSeconds: 10,
	}
}

// Reload has a server that runs read its configuration again.
const Reload = `test ! -s /run/sshd.pid || kill -HUP "$(cat /run/sshd.pid)" || true`

// Listens succeeds where the server takes connections.
const Listens = `timeout 5 bash -c ": < /dev/tcp/127.0.0.1/` + port + `"`

// Ready returns a script that succeeds when the server takes connections and slurmctld answers.
func Ready(cluster layout.Cluster) string {
	return Listens + ` && ` + layout.ConfServerName + `=` + cluster.ConfServer() +
		` timeout 10 sinfo -h -o %T > /dev/null`
}

// Do runs a named task in a member: an operation's or an action's.
type Do func(ctx context.Context, member adapter.Member, step string, task adapter.NodeTask,
	options ...adapter.TaskOption) (adapter.TaskResult, error)

// keyScript creates the server's key where it does not exist, and prints its public half.
const keyScript = `test -s ` + hostKey + ` || ssh-keygen -q -t ed25519 -N "" -C "" -f ` + hostKey + ` || exit 1
cat ` + hostKey + `.pub`

// certifyScript keeps what the platform has sent: the authorities $1, the lines that certificates of the endpoint have
// $2, and the host's certificate $3. The certificate is of 30 days; one younger than half of that stays, since the
// server reloads for another one.
const certifyScript = `put() { printf "%s\n" "$2" > "$1.new" && chmod 0644 "$1.new" && mv "$1.new" "$1"; }
put ` + authorities + ` "$1" && put ` + layout.EndpointFile + ` "$2" || exit 1
test -z "$(find ` + hostKey + `-cert.pub -mtime -15 2> /dev/null)" || exit 0
put ` + hostKey + `-cert.pub "$3" || exit 1
` + Reload

// Certify brings a login the platform's word: whose certificates to accept, and a certificate of its own.
func Certify(ctx context.Context, api *adapter.Client, do Do, member adapter.Member) error {
	made, err := do(ctx, member, "host-key-"+member.ID, shell(keyScript))
	if err != nil {
		return err
	}
	answer, err := gql.IssueSshHostCertificate(ctx, api, gql.IssueSshHostCertificateInput{
		MemberId: member.ID, PublicKey: strings.TrimSpace(made.Stdout),
		Reason: "the SSH server of the cluster's login"})
	if err != nil {
		return fmt.Errorf("certify the login's server: %w", err)
	}
	said := answer.IssueSshHostCertificate
	_, err = do(ctx, member, "certify-"+member.ID, shell(certifyScript, strings.Join(said.PeopleAuthorities, "\n"),
		strings.Join(said.EndpointPrincipals, "\n"), said.Certificate), adapter.Within(time.Minute))
	return err
}

func shell(script string, arguments ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: append([]string{"sh", "-c", script, "login"}, arguments...)}
}
