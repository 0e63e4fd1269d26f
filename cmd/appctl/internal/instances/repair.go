package instances

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// repair returns the command that shows or sets how an instance is repaired.
func repair(t *command.Tool) *cobra.Command {
	input := gql.SetRepairPolicyInput{}
	var mode string
	var grace, limit int
	cmd := command.Verb(t, "repair INSTANCE", "Show or set who repairs an instance whose members are lost", viewRepair,
		func(ctx context.Context, args []string) (_ *gql.Repair, err error) {
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return nil, err
			}
			if mode == "" {
				answer, err := gql.GetRepair(ctx, t, input.InstanceId)
				return &answer.Instance, err
			}
			if input.Mode, err = command.Enum("mode", mode, gql.AllRepairMode); err != nil {
				return nil, err
			}
			if grace > 0 {
				input.GraceSeconds = &grace
			}
			if limit > 0 {
				input.HourlyLimitMicros = &limit
			}
			answer, err := gql.SetRepairPolicy(ctx, t, input)
			return &answer.SetRepairPolicy, err
		})
	cmd.Long = `Show who repairs an instance whose members are lost; with --mode set it. MANUAL leaves repair to people; AUTOMATIC
has the platform recover members, or else replace them. Members that a restart of their node ended come back in any mode.`
	cmd.Example = `  appctl instances repair demo
  appctl instances repair demo --mode automatic --budget 3 --back-off 30 --reason "no one watches it"`
	flags := cmd.Flags()
	flags.StringVar(&mode, "mode", "", "manual or automatic; without it the policy is shown")
	flags.IntVar(&input.Budget, "budget", 3, "how many repairs may begin within an hour, 1 to 20")
	flags.IntVar(&input.BackOffSeconds, "back-off", 30,
		"seconds of pause after a repair that did not help; doubled each time")
	flags.IntVar(&grace, "grace", 0,
		"seconds with too few members after which the instance fails for good; 0 for never")
	flags.IntVar(&limit, "hourly-limit-micros", 0,
		"highest cost an hour of the capacity of one replacement, in millionths; 0 for no limit")
	flags.StringVar(&input.Reason, "reason", "", "why, kept in the audit")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

func viewRepair(found *gql.Repair) command.View {
	return command.Detail(found, found.Id, func(p *render.Page) {
		policy := found.Repair
		limit := "none"
		if policy.HourlyLimitMicros != nil {
			limit = fmt.Sprintf("%d.%06d an hour", *policy.HourlyLimitMicros/1_000_000,
				*policy.HourlyLimitMicros%1_000_000)
		}
		p.Fields("Instance", found.Name, "Repaired by", strings.ToLower(string(policy.Mode)),
			"Budget", strconv.Itoa(policy.Budget)+" an hour", "Back-off",
			strconv.Itoa(policy.BackOffSeconds)+" s, doubled",
			"Grace", render.Bound(policy.GraceSeconds, "for ever"), "Cost limit", limit,
			"Without service since", render.Time(found.UnservedAt), "Stopped", cmp.Or(found.RepairStopped, "no"))
	})
}
