package shell

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/members"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxInstances is how many instances of a project a configuration is for.
const maxInstances = 100

// config prints what ssh, scp, rsync, sftp and editors must know of an instance, or of a project's instances.
func config(t *command.Tool) *cobra.Command {
	var reason, user string
	cmd := t.Command("ssh-config INSTANCE", "Print the ssh configuration for an instance, or for all of the project",
		func(ctx context.Context, args []string) error {
			if len(strings.TrimSpace(reason)) < 3 {
				return command.Usagef("--reason: say why in 3 characters or more; it is kept in the audit")
			}
			found, err := named(ctx, t, args)
			if err != nil {
				return err
			}
			for _, one := range found {
				if err := configure(ctx, t, one, reason, user); err != nil {
					return err
				}
			}
			return nil
		})
	cmd.Use, cmd.Args = "ssh-config [INSTANCE]", cobra.MaximumNArgs(1)
	cmd.Long = `Print the ssh configuration for the members of an instance, or of all live instances of the project.

Put it into ~/.ssh/config, or into a file that this includes. After that ssh, scp, sftp, rsync and the remote mode of
editors know INSTANCE.COMPONENT.N, and INSTANCE if the app has an endpoint of protocol ssh. Each login requests its own
certificate, which is valid for minutes. Print it again when the members have changed.`
	cmd.Example = `  appctl ssh-config training --reason "copy results" > ~/.ssh/training
  scp -F ~/.ssh/training training.worker.0:/results/out.csv .`
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	cmd.Flags().StringVar(&user, "user", "", "user to log in as (default the one that the app names, else root)")
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}

// named are the instances that were meant, with the names that people give them.
func named(ctx context.Context, t *command.Tool, args []string) ([]place, error) {
	if len(args) == 1 {
		id, err := lookup.Instance(ctx, t, args[0])
		return []place{{instance: id, name: args[0]}}, err
	}
	project, err := t.ProjectID(ctx)
	if err != nil {
		return nil, err
	}
	found, err := lookup.Instances(ctx, t, project, gql.InstanceFilter{}, maxInstances)
	var all []place
	for _, one := range found {
		if one.ReleasedAt == nil {
			all = append(all, place{instance: one.Id, name: one.Name})
		}
	}
	return all, err
}

// configure prints the configuration for one instance.
func configure(ctx context.Context, t *command.Tool, of place, reason, user string) error {
	answer, err := gql.ListEndpoints(ctx, t, of.instance)
	if err != nil {
		return err
	}
	serves := map[string]string{} // component to endpoint
	var places []place
	for _, one := range answer.Instance.Endpoints {
		if one.Protocol == protocol && serves[one.ComponentKey] == "" {
			serves[one.ComponentKey] = one.Name
			at := of
			at.endpoint = one.Name
			if len(places) == 0 && one.Serving > 0 { // of several, the first one is the instance's
				places = append(places, at)
			}
		}
	}
	found, err := members.Bound(ctx, t, of.instance)
	if err != nil {
		return err
	}
	if len(places) > 0 { // one account for all that the app serves
		if err := places[0].admit(ctx, t); err != nil {
			return err
		}
		of.account = places[0].account
	}
	for _, one := range found {
		at := place{instance: of.instance, name: of.name, endpoint: serves[one.ComponentKey], member: one.Id,
			component: one.ComponentKey, index: one.Index}
		if at.endpoint != "" {
			at.account = of.account
		}
		places = append(places, at)
	}
	for _, at := range places {
		if err := host(t, &at, reason, user); err != nil {
			return err
		}
	}
	return nil
}

// host prints the part of the configuration that is about one place.
func host(t *command.Tool, at *place, reason, user string) error {
	via, err := itself(t, "ssh-proxy", at, reason)
	if err != nil {
		return err
	}
	asks, err := itself(t, "ssh-certificate", at, reason)
	if err != nil {
		return err
	}
	name := at.name
	if at.member != "" {
		name = fmt.Sprintf("%s.%s.%d", at.name, at.component, at.index)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Host %s\n    User %s\n", name, cmp.Or(user, at.user()))
	for _, option := range options(keptDir(t), at, via) {
		key, value, _ := strings.Cut(option, "=")
		fmt.Fprintf(&text, "    %s %s\n", key, value)
	}
	// A condition that always holds once the certificate is there; ssh runs it before it reads the files.
	fmt.Fprintf(&text, "Match originalhost %s exec \"%s\"\n\n", name, strings.ReplaceAll(asks, `"`, `\"`))
	_, err = fmt.Fprint(t.Env.Stdout, text.String())
	return err
}

// certificate requests a certificate and writes it where the configuration of ssh expects it.
func certificate(t *command.Tool) *cobra.Command {
	var w wanted
	cmd := t.Command("ssh-certificate TARGET", "Request a short-lived certificate; for the ssh configuration",
		func(ctx context.Context, args []string) error {
			to, err := find(ctx, t, args[0], w)
			if err != nil {
				return err
			}
			if err := to.admit(ctx, t); err != nil {
				return err
			}
			return keptDir(t).certify(ctx, t, to, w.reason)
		})
	cmd.Hidden = true
	w.flags(cmd)
	return cmd
}
