package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type launchFlags struct {
	input       gql.LaunchInstanceInput
	allocations []string
	components  []string
	set         []string
	config      string
	mode        string
	serves      string
	deadline    time.Duration
	wait        waitFlags
}

func (t *tool) launchCommand() *cobra.Command {
	var flags launchFlags
	cmd := t.command("launch APP", "Launch an app into allocations of the project", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.launch(ctx, args[0], &flags) })
	cmd.Example = `  appctl launch hello --name demo --allocation alc-1 --component worker=2 --set greeting=hi --wait
  instance=$(appctl launch hello --name demo --allocation alc-1 --wait --quiet)`
	set := cmd.Flags()
	set.StringVar(&flags.input.Name, "name", "", "name of the instance: 2 to 40 lower-case letters, digits and hyphens")
	set.StringSliceVar(&flags.allocations, "allocation", nil, "allocation by id or name; repeat or separate by commas")
	set.StringArrayVar(&flags.components, "component", nil, "members of a component, key=count; repeat for more")
	set.StringArrayVar(&flags.set, "set", nil, "a value of the config, path.to.key=value; repeat for more")
	set.StringVar(&flags.config, "config", "", `JSON file with the config; "-" reads standard input`)
	set.StringVar(&flags.input.Version, "version", "", "version; if not given the canary that has chosen the project, or else the active one")
	set.DurationVar(&flags.deadline, "deadline", 0, "time after which the launch counts as failed, 30s to 24h; 15m if not given")
	set.StringVar(&flags.mode, "mode", "", "who runs its control plane: tenant-dedicated (if not given) or platform-managed")
	set.StringVar(&flags.serves, "serves", "", "whom its control plane serves: project (if not given) or tenant")
	set.BoolVar(&flags.input.Smoke, "smoke", false, "test a manifest that is not active yet")
	set.StringVar(&flags.input.Reason, "reason", "", "why, kept in the audit")
	flags.wait.register(cmd)
	keyFlag(cmd, &flags.input.IdempotencyKey)
	_ = cmd.MarkFlagRequired("name")
	_ = cmd.MarkFlagRequired("allocation")
	cmd.ValidArgsFunction = t.completeApps
	return cmd
}

func (t *tool) launch(ctx context.Context, app string, flags *launchFlags) error {
	input := &flags.input
	var err error
	if input.Components, err = components(flags.components); err != nil {
		return err
	}
	if input.Config, err = t.document("--config", flags.config, flags.set); err != nil {
		return err
	}
	if input.DeadlineSeconds, err = seconds(flags.deadline); err != nil {
		return err
	}
	if err := flags.control(); err != nil {
		return err
	}
	c, project, err := t.scope(ctx)
	if err != nil {
		return err
	}
	if input.AllocationIds, err = t.allocationIDs(ctx, c, flags.allocations); err != nil {
		return err
	}
	input.ProjectId, input.AppSlug, input.IdempotencyKey = project, app, key(input.IdempotencyKey)
	answer, err := gql.LaunchInstance(ctx, c, *input)
	if err != nil {
		return err
	}
	made := answer.LaunchInstance
	return t.finish(ctx, c, flags.wait, started{
		operation: made.Operation, JSON: made, IDs: []string{made.Instance.Id},
		what:  fmt.Sprintf("launch of %s (%s)", made.Instance.Name, made.Instance.Id),
		ended: endedInstance(c, made.Instance.Id, made.Instance.Id),
	})
}

// control reads who runs the control plane and whom it serves; what is not given is the platform's default.
func (f *launchFlags) control() error {
	if f.mode != "" {
		found, err := enums("mode", []string{f.mode}, gql.AllOperatingMode)
		if err != nil {
			return err
		}
		f.input.OperatingMode = found[0]
	}
	if f.serves != "" {
		found, err := enums("serves", []string{f.serves}, gql.AllControlPlaneScope)
		if err != nil {
			return err
		}
		f.input.ControlPlaneScope = found[0]
	}
	return nil
}

// components reads key=count pairs.
func components(pairs []string) ([]gql.ComponentInput, error) {
	var found []gql.ComponentInput
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		count, err := strconv.Atoi(text)
		if err != nil || name == "" {
			return nil, usagef("--component %q: must be key=count", pair)
		}
		found = append(found, gql.ComponentInput{Key: name, Count: count})
	}
	return found, nil
}
