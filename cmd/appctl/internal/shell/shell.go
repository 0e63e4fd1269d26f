// Package shell is the commands by which people log in to members with a stock OpenSSH client. The client does all that
// it does anyway; appctl brings it the way (ssh-proxy), a certificate for a key of its own (ssh-certificate) and what
// it must know of hosts.
//
//	ssh, scp, sftp, rsync, editors ── ProxyCommand: appctl ssh-proxy ── platform ── member
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/members"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// protocol is that of the endpoints that are logged in to.
const protocol = "ssh"

// Commands returns the commands.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{login(t), config(t), proxy(t), certificate(t)}
}

// wanted holds the flags of a login.
type wanted struct {
	endpoint, reason, user string
	platform               bool
	options                []string
}

func (w *wanted) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.user, "user", "", "user to log in as (default the one that the app names, else root)")
	flags.StringVar(&w.endpoint, "endpoint", "", "an endpoint of protocol ssh, where there are several")
	flags.BoolVar(&w.platform, "platform", false, "the platform's own server, even if the app has one")
	command.ReasonFlag(cmd, &w.reason)
}

// login runs ssh.
func login(t *command.Tool) *cobra.Command {
	var w wanted
	cmd := t.Command("ssh TARGET COMMAND", "Log in to a member with this machine's ssh",
		func(ctx context.Context, args []string) error {
			to, err := find(ctx, t, args[0], w)
			if err != nil {
				return err
			}
			return run(ctx, t, to, w, args[1:])
		})
	cmd.Use, cmd.Args = "ssh INSTANCE[/COMPONENT/N] [-- COMMAND…]", cobra.MinimumNArgs(1)
	cmd.Long = `Log in to a member with this machine's ssh.

If the app declares an endpoint of protocol ssh, its own server answers; if not, the platform's, which every member has,
and which requires --reason as appctl exec does. The key and its certificate, valid for minutes, are created for this
login alone. An app with the action ssh.account first creates an account for you, and returns its name.`
	cmd.Example = `  appctl ssh training/worker/0 --reason "check the disk"
  appctl ssh training/worker/0 --reason "count" -- nproc
  appctl ssh-config training --reason "edit" >> ~/.ssh/config      # for scp, rsync, sftp and editors`
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	w.flags(cmd)
	cmd.Flags().StringArrayVar(&w.options, "ssh-option", nil,
		"an option of ssh, such as LogLevel=DEBUG; may be repeated")
	return cmd
}

// run makes a key and its certificate and runs ssh with them.
func run(ctx context.Context, t *command.Tool, to *place, w wanted, words []string) error {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return command.Failed(errors.New("ssh was not found on this machine: install the OpenSSH client"))
	}
	dir, err := os.MkdirTemp("", "appctl-ssh-")
	if err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := to.admit(ctx, t); err != nil {
		return err
	}
	kept := folder(dir)
	if err := kept.certify(ctx, t, to, w.reason); err != nil {
		return err
	}
	via, err := itself(t, "ssh-proxy", to, w.reason)
	if err != nil {
		return err
	}
	args := []string{"-F", "none", "-l", cmp.Or(w.user, to.user())}
	for _, option := range append(options(kept, to, via), w.options...) {
		args = append(args, "-o", option)
	}
	args = append(append(args, "--", to.alias()), words...)
	ssh := exec.CommandContext(ctx, program, args...) // #nosec G204 -- the person's own
	ssh.Stdin, ssh.Stdout, ssh.Stderr = t.Env.Stdin, t.Env.Stdout, t.Env.Stderr
	err = ssh.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return command.Failed(fmt.Errorf("ssh ended with exit code %d", ended.ExitCode()))
	}
	return err
}

// options returns the options that ssh needs, as NAME=VALUE.
func options(kept folder, to *place, via string) []string {
	return []string{
		"ProxyCommand=" + via, "HostKeyAlias=" + to.alias(), "IdentityFile=" + quoted(kept.key()),
		"CertificateFile=" + quoted(kept.certificate(to)), "IdentitiesOnly=yes", "IdentityAgent=none",
		"UserKnownHostsFile=" + quoted(kept.hosts(to)), "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes",
		"PreferredAuthentications=publickey", "CheckHostIP=no", "UpdateHostKeys=no",
	}
}

// proxy passes the bytes of an ssh client. It is what ProxyCommand runs.
func proxy(t *command.Tool) *cobra.Command {
	var w wanted
	cmd := t.Command("ssh-proxy TARGET", "Pass an ssh client's bytes to a member; for ProxyCommand",
		func(ctx context.Context, args []string) error {
			to, err := find(ctx, t, args[0], w)
			if err != nil {
				return err
			}
			return pass(ctx, t, to, w.reason)
		})
	cmd.Hidden = true
	w.flags(cmd)
	return cmd
}

// pass connects standard input and output to the member.
func pass(ctx context.Context, t *command.Tool, to *place, reason string) error {
	api, err := t.Connect()
	if err != nil {
		return err
	}
	var there io.ReadWriteCloser
	if to.endpoint == "" {
		there, err = api.Shell(ctx, to.member, reason)
	} else {
		there, err = api.Connect(ctx, to.instance, to.endpoint, to.member)
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = there.Close() })()
	go func() { // the client ends this by closing its side
		_, _ = io.Copy(there, t.Env.Stdin)
		_ = there.Close()
	}()
	_, _ = io.Copy(t.Env.Stdout, there) // how it ended is for ssh to say
	_ = there.Close()
	return nil
}

// itself is a line for a shell that calls this program about a place.
func itself(t *command.Tool, verb string, to *place, reason string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	words := []string{program, verb}
	for _, flag := range [][2]string{{"--server", t.Server}, {"--project", t.Project}, {"--context", t.Context},
		{"--reason", reason}, {"--endpoint", to.endpoint}} {
		if flag[1] != "" {
			words = append(words, flag[0]+"="+flag[1])
		}
	}
	if to.endpoint == "" {
		words = append(words, "--platform")
	}
	words = append(words, to.target())
	for i, word := range words { // ssh expands percent signs before the shell sees the line
		words[i] = "'" + strings.ReplaceAll(strings.ReplaceAll(word, "'", `'\''`), "%", "%%") + "'"
	}
	return strings.Join(words, " "), nil
}

// quoted is a path as an option of ssh.
func quoted(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// place is what is logged in to.
type place struct {
	instance, name string // the instance's id, and what the person calls it
	endpoint       string // of the app's own server; empty for the platform's
	member         string // empty for any that serves the endpoint
	component      string
	index          int
	account        string // who the app says to log in as; empty where it does not
}

// alias is the name in the certificate of the host.
func (p *place) alias() string {
	if p.member == "" {
		return p.instance
	}
	return fmt.Sprintf("%s.%d.%s", p.component, p.index, p.instance)
}

// target is the place for another call of this program.
func (p *place) target() string {
	if p.member == "" {
		return p.instance
	}
	return fmt.Sprintf("%s/%s/%d", p.instance, p.component, p.index)
}

// find returns the place that the command line names, with the endpoint that serves it.
func find(ctx context.Context, t *command.Tool, given string, w wanted) (*place, error) {
	if w.platform && w.endpoint != "" {
		return nil, command.Usagef("--platform and --endpoint exclude each other")
	}
	to, err := located(ctx, t, given)
	if err != nil {
		return nil, err
	}
	if !w.platform {
		if to.endpoint, err = serving(ctx, t, to, w.endpoint); err != nil {
			return nil, err
		}
	}
	if to.endpoint == "" {
		if len(strings.TrimSpace(w.reason)) < 3 {
			return nil, command.Usagef("--reason: say why in 3 characters or more; it is kept in the audit")
		}
		return to, only(ctx, t, to)
	}
	return to, nil
}

// located reads INSTANCE, INSTANCE/COMPONENT/N or the id of a member.
func located(ctx context.Context, t *command.Tool, given string) (*place, error) {
	name, _, isMember := strings.Cut(given, "/")
	if !isMember && !strings.HasPrefix(given, "mem_") {
		id, err := lookup.Instance(ctx, t, given)
		return &place{instance: id, name: given}, err
	}
	member, err := members.Located(ctx, t, given)
	if err != nil {
		return nil, err
	}
	if !isMember {
		name = member.InstanceId
	}
	return &place{instance: member.InstanceId, name: name, member: member.Id, component: member.ComponentKey,
		index: member.Index}, nil
}

// serving returns the endpoint of protocol ssh that serves a place; empty without one.
func serving(ctx context.Context, t *command.Tool, to *place, named string) (string, error) {
	answer, err := gql.ListEndpoints(ctx, t, to.instance)
	if err != nil {
		return "", err
	}
	var found []string
	for _, one := range answer.Instance.Endpoints {
		if one.Protocol == protocol && (to.component == "" || one.ComponentKey == to.component) {
			if one.Name == named {
				return named, nil
			}
			found = append(found, one.Name)
		}
	}
	switch {
	case named != "":
		return "", command.NotFoundf("--endpoint %s: %s has no such endpoint of protocol ssh", named, to.name)
	case len(found) > 1:
		return "", command.Usagef("%s has several: give --endpoint, one of %s", to.name, strings.Join(found, ", "))
	case len(found) == 1:
		return found[0], nil
	}
	return "", nil
}

// only chooses the only member where none was given.
func only(ctx context.Context, t *command.Tool, to *place) error {
	if to.member != "" {
		return nil
	}
	found, err := members.Bound(ctx, t, to.instance)
	if err != nil {
		return err
	}
	var names []string
	for _, one := range found {
		to.member, to.component, to.index = one.Id, one.ComponentKey, one.Index
		names = append(names, fmt.Sprintf("%s/%s/%d", to.name, one.ComponentKey, one.Index))
	}
	switch len(names) {
	case 0:
		return command.NotFoundf("no member of %s is on a node", to.name)
	case 1:
		return nil
	}
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	return command.Usagef("%s has several members: give one, such as %s", to.name, strings.Join(names, ", "))
}

// keptDir is the folder beside the configuration where keys and certificates are.
func keptDir(t *command.Tool) folder {
	return folder(filepath.Join(filepath.Dir(t.Env.ConfigPath), "ssh"))
}
