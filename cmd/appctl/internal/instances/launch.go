package instances

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Shape is what every launch may say of the instance: its components, its config and its deadline.
type Shape struct {
	components, further, set []string
	config                   string
	deadline                 time.Duration
}

// Register adds the flags.
func (s *Shape) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&s.components, "component", nil, "members of a component, key=count; repeat for more")
	flags.StringArrayVar(&s.further, "further", nil,
		"capacity for further members of a component, such as worker=gpu-slice:1, worker=baremetal or "+
			"worker=gpu-slice:1:SKU:REGION; without --allocation the launch also requests it for each of its members; "+
			"repeat for more")
	flags.StringArrayVar(&s.set, "set", nil, "a value of the config, path.to.key=value; repeat for more")
	flags.StringVar(&s.config, "config", "", `JSON file with the config; "-" reads standard input`)
	flags.DurationVar(&s.deadline, "deadline", 0,
		"time after which the launch counts as failed, 30s to 24h; 15m if not given")
}

// Into reads the flags into a launch.
func (s *Shape) Into(t *command.Tool, input *gql.LaunchInstanceInput) (err error) {
	for _, pair := range s.components {
		name, text, _ := strings.Cut(pair, "=")
		count, err := strconv.Atoi(text)
		if err != nil || name == "" {
			return command.Usagef("--component %q: must be key=count", pair)
		}
		input.Components = append(input.Components, gql.ComponentInput{Key: name, Count: count})
	}
	if err := s.intents(input); err != nil {
		return err
	}
	if input.Config, err = t.Document("--config", s.config, s.set); err != nil {
		return err
	}
	input.DeadlineSeconds, err = command.Seconds(s.deadline)
	return err
}

// intents reads what further members of components live in. A component is named by --component as well.
func (s *Shape) intents(input *gql.LaunchInstanceInput) error {
	for _, pair := range s.further {
		name, text, _ := strings.Cut(pair, "=")
		at := slices.IndexFunc(input.Components, func(c gql.ComponentInput) bool { return c.Key == name })
		if at < 0 {
			return command.Usagef("--further %q: give --component %s=COUNT with it", pair, name)
		}
		intent, err := intentOf(text)
		if err != nil {
			return command.Usagef("--further %q: must be COMPONENT=baremetal or COMPONENT=gpu-slice:GPUS, "+
				"optionally followed by :SKU and :REGION", pair)
		}
		input.Components[at].Intent = intent
	}
	return nil
}

// intentOf reads capacity in the form SHAPE[:GPUS][:SKU[:REGION]]; a whole node has no number of GPUs.
func intentOf(text string) (_ *gql.CapacityIntentInput, err error) {
	parts := strings.Split(text, ":")
	intent := &gql.CapacityIntentInput{}
	if intent.Shape, err = command.Enum("further", parts[0], gql.AllCapacityShape); err != nil {
		return nil, err
	}
	parts = parts[1:]
	if intent.Shape == gql.CapacityShapeGpuSlice {
		if len(parts) == 0 {
			return nil, strconv.ErrSyntax
		}
		gpus, err := strconv.Atoi(parts[0])
		if err != nil {
			return nil, err
		}
		intent.GpuCount, parts = &gpus, parts[1:]
	}
	if len(parts) > 2 {
		return nil, strconv.ErrSyntax
	}
	parts = append(parts, "", "")
	intent.Sku, intent.Region = parts[0], parts[1]
	return intent, nil
}

// launchFlags are the flags of a launch that need reading.
type launchFlags struct {
	input        gql.LaunchInstanceInput
	shape        Shape
	allocations  []string
	volumes      []string
	mode, serves string
	operator     string
	plan         bool
	wait         operations.WaitFlags
}

// launch returns the command that launches an app; --quiet writes the instance's id, for scripts that go on with it.
func launch(t *command.Tool) *cobra.Command {
	var f launchFlags
	cmd := t.Command("launch APP", "Launch an app into allocations of the project, or into capacity that it requests",
		func(ctx context.Context, args []string) error { return f.launch(ctx, t, args[0]) })
	cmd.Example = `  appctl launch hello --name demo --allocation alc-1 --component worker=2 --set greeting=hi --wait
  appctl launch hello --name demo --component peer=2 --further peer=gpu-slice:1 --plan
  instance=$(appctl launch hello --name demo --allocation alc-1 --wait --quiet)`
	flags := cmd.Flags()
	flags.StringVar(&f.input.Name, "name", "", "name of the instance: 2 to 40 lower-case letters, digits and hyphens")
	flags.StringSliceVar(&f.allocations, "allocation", nil, "allocation by id or name; repeat or separate by commas")
	flags.StringArrayVar(&f.volumes, "volume", nil,
		"volume for a slot of the app, SLOT=VOLUME by id or name; may be repeated")
	f.shape.Register(cmd)
	flags.StringVar(&f.input.Version, "version", "",
		"version; if not given the canary if the project is in it, or else the active one")
	flags.StringVar(&f.mode, "mode", "",
		"who runs its control plane: tenant-dedicated (if not given) or platform-managed")
	flags.StringVar(&f.serves, "serves", "", "whom its control plane serves: project (if not given) or tenant")
	flags.StringVar(&f.operator, "operator", "",
		"service account of the project that the app's adapter may act by, by id or name; none if not given")
	flags.BoolVar(&f.input.Smoke, "smoke", false, "test a manifest that is not active yet")
	flags.BoolVar(&f.plan, "plan", false, "show what it would do and what it costs an hour; launch nothing")
	flags.StringVar(&f.input.PlanHash, "plan-hash", "", "launch only if nothing has changed since the plan")
	command.ReasonFlag(cmd, &f.input.Reason)
	f.wait.Register(cmd)
	command.KeyFlag(cmd, &f.input.IdempotencyKey)
	command.Need(cmd, "name")
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

// launch reads the flags, launches, and follows the launch when that is wanted.
func (f *launchFlags) launch(ctx context.Context, t *command.Tool, app string) (err error) {
	input := &f.input
	if len(f.allocations) == 0 && len(f.shape.further) == 0 {
		return command.Usagef("no capacity is given: use --allocation NAME, or --further COMPONENT=SHAPE to request it")
	}
	if err := f.shape.Into(t, input); err != nil {
		return err
	}
	if err := f.control(); err != nil {
		return err
	}
	if input.ProjectId, err = t.ProjectID(ctx); err != nil {
		return err
	}
	if input.AllocationIds, err = lookup.AllocationIDs(ctx, t, f.allocations); err != nil {
		return err
	}
	if f.operator != "" {
		if input.OperatorServiceAccountId, err = lookup.Account(ctx, t, f.operator); err != nil {
			return err
		}
	}
	if err := f.bind(ctx, t); err != nil {
		return err
	}
	input.AppSlug = app
	if f.plan {
		return f.show(ctx, t)
	}
	answer, err := gql.LaunchInstance(ctx, t, *input)
	if err != nil {
		return err
	}
	made := &answer.LaunchInstance
	begun := changed(t, "launch", &made.Instance, made.Operation, made)
	begun.IDs, begun.Ended = []string{made.Instance.Id}, Ended(t, made.Instance.Id, made.Instance.Id)
	return operations.Finish(ctx, t, f.wait, begun)
}

// bind reads which volumes are for which slots.
func (f *launchFlags) bind(ctx context.Context, t *command.Tool) error {
	for _, pair := range f.volumes {
		slot, given, ok := strings.Cut(pair, "=")
		if !ok || slot == "" || given == "" {
			return command.Usagef("--volume %q: must be SLOT=VOLUME", pair)
		}
		id, err := lookup.Volume(ctx, t, given)
		if err != nil {
			return err
		}
		f.input.Volumes = append(f.input.Volumes, gql.VolumeUseInput{Slot: slot, VolumeId: id})
	}
	return nil
}

// show plans the launch.
func (f *launchFlags) show(ctx context.Context, t *command.Tool) error {
	in := &f.input
	answer, err := gql.PlanLaunchInstance(ctx, t, gql.PlanLaunchInstanceInput{
		ProjectId: in.ProjectId, AppSlug: in.AppSlug, Version: in.Version, Name: in.Name,
		AllocationIds: in.AllocationIds,
		Components:    in.Components, Config: in.Config, OperatingMode: in.OperatingMode,
		ControlPlaneScope: in.ControlPlaneScope,
		DeadlineSeconds:   in.DeadlineSeconds, Smoke: in.Smoke, OperatorServiceAccountId: in.OperatorServiceAccountId,
		Volumes: in.Volumes,
	})
	if err != nil {
		return err
	}
	if err := t.Show(operations.LaunchPlanView(&answer.PlanLaunchInstance)); err != nil {
		return err
	}
	return operations.Refused(answer.PlanLaunchInstance.Verdicts)
}

// control reads who runs the control plane and whom it serves; what is not given is the platform's default.
func (f *launchFlags) control() (err error) {
	if f.mode != "" {
		if f.input.OperatingMode, err = command.Enum("mode", f.mode, gql.AllOperatingMode); err != nil {
			return err
		}
	}
	if f.serves != "" {
		f.input.ControlPlaneScope, err = command.Enum("serves", f.serves, gql.AllControlPlaneScope)
	}
	return err
}
