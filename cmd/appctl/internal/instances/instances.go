// Package instances is the commands about instances of apps: launch, show, change and end them, run what their apps
// can do, follow what happens, and share their control planes.
package instances

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about instances.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("instances", "Running apps", list(t), show(t), upgrade(t), rollback(t), repair(t), operator(t),
			generations(t), decommission(t, false)),
		launch(t), decommission(t, true), actions(t), events(t), shares(t),
	}
}

// list returns the command that lists instances, by status, app and name.
func list(t *command.Tool) *cobra.Command {
	var filter gql.InstanceFilter
	var statuses []string
	cmd := command.List(t, "list", "List the project's instances, newest first", table,
		func(ctx context.Context, _ []string, limit int) (_ []gql.Instance, err error) {
			if filter.Statuses, err = command.Enums("status", statuses, gql.AllInstanceStatus); err != nil {
				return nil, err
			}
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			return lookup.Instances(ctx, t, project, filter, limit)
		})
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these statuses, such as running")
	cmd.Flags().StringVar(&filter.AppSlug, "app", "", "only this app")
	cmd.Flags().StringVar(&filter.Search, "search", "", "only names that contain this")
	_ = cmd.RegisterFlagCompletionFunc("app", lookup.CompleteApps(t))
	return cmd
}

var table = command.Table[gql.Instance]{
	Heading: []string{"ID", "NAME", "APP", "STATUS", "HEALTH", "MEMBERS", "CREATED"},
	Row: func(instance *gql.Instance) []string {
		var roles []string // healthy of desired members for each component
		for _, role := range instance.Roles {
			roles = append(roles, fmt.Sprintf("%s %d/%d", role.ComponentKey, role.Healthy, role.Desired))
		}
		return []string{
			instance.Id, instance.Name, instance.AppSlug + " " + instance.AppVersion, string(instance.Status),
			string(instance.Health), strings.Join(roles, ", "), render.Time(&instance.CreatedAt),
		}
	},
}

func show(t *command.Tool) *cobra.Command {
	cmd := command.Verb(t, "show INSTANCE", "Show an instance with its members",
		func(instance *gql.InstanceDetail) command.View {
			return command.Detail(instance, instance.Id, func(p *render.Page) { page(p, instance) })
		},
		func(ctx context.Context, args []string) (*gql.InstanceDetail, error) {
			return lookup.InstanceDetail(ctx, t, args[0])
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// Ended returns what shows an instance as its operation has left it; ids are what --quiet writes.
func Ended(
	t *command.Tool, id string, ids ...string,
) func(context.Context, *gql.OperationDetail) (command.View, error) {
	return func(ctx context.Context, op *gql.OperationDetail) (command.View, error) {
		answer, err := gql.GetInstance(ctx, t, id)
		if err != nil {
			return command.View{}, err
		}
		return command.View{
			JSON: map[string]any{"instance": answer.Instance, "operation": op}, IDs: ids,
			Page: func(p *render.Page) { page(p, &answer.Instance) },
		}, nil
	}
}

// changed is the work on an instance that a verb has begun.
func changed(t *command.Tool, what string, instance *gql.Instance, op gql.Operation, answer any) operations.Started {
	return operations.Started{
		Operation: op, JSON: answer, What: fmt.Sprintf("%s of %s (%s)", what, instance.Name, instance.Id),
		Ended: Ended(t, instance.Id, op.Id),
	}
}

// page shows an instance with what keeps it from where it should be, its members and its actions.
func page(p *render.Page, instance *gql.InstanceDetail) {
	problem, generation := "", ""
	if instance.Failure != nil {
		problem = fmt.Sprintf("%s (%s): %s", instance.Failure.Code, instance.Failure.Owner, instance.Failure.Message)
	}
	if instance.Generation != 0 {
		generation = fmt.Sprint(instance.Generation)
	}
	var allocations []string
	for _, allocation := range instance.Allocations {
		allocations = append(allocations, allocation.Name)
	}
	p.Fields("Instance", instance.Id, "Name", instance.Name, "App", instance.AppSlug+" "+instance.AppVersion,
		"Status", string(instance.Status), "Health", render.Joined(" ", string(instance.Health),
			instance.HealthMessage),
		"Failure", problem, "Project", instance.ProjectId, "Allocations", strings.Join(allocations, ", "),
		"Last operation", parts.Progress(instance.LastOperation), "Config", string(instance.Config),
		"Correlation id", instance.CorrelationId, "Generation", generation,
		"Operator account", instance.OperatorServiceAccountId, "Observed", render.Time(instance.ObservedAt),
		"Created", render.Time(&instance.CreatedAt), "Released", render.Time(instance.ReleasedAt))
	parts.Blockers.Under(p, "Blockers", instance.Blockers)
	drift.Under(p, "Drift", instance.Drift)
	leftBehind.Under(p, "Left behind", instance.Orphans)
	components.Under(p, "Components", instance.Roles)
	volumes.Under(p, "Volumes", instance.Volumes)
	pageMembers(p, instance.Members)
	parts.Actions.Under(p, "Actions", instance.Actions)
}

// pageMembers shows the members that an instance's answer carries, which are not all of a large one.
func pageMembers(p *render.Page, found gql.MemberPage) {
	var list []gql.Member
	for i := range found.Edges {
		list = append(list, found.Edges[i].Node)
	}
	p.Section("Members")
	members.On(p, list)
	if found.PageInfo.HasNextPage {
		p.Line(fmt.Sprintf("there are more than these %s", render.Plural(len(list), "member")))
	}
}

var members = command.Table[gql.Member]{
	Heading: []string{"ID", "COMPONENT", "STATUS", "HEALTH", "NODE", "ALLOCATION", "MESSAGE"},
	Row: func(member *gql.Member) []string {
		return []string{
			member.Id, parts.MemberName(member.ComponentKey, member.Index),
			parts.MemberStatus(member.Status, member.Cordoned),
			string(member.Health), parts.NodeName(member.Node), parts.AllocationName(member.Allocation),
			member.HealthMessage,
		}
	},
}

// volumes is the table of the volumes that an instance uses.
var volumes = command.Table[gql.VolumeUse]{
	Heading: []string{"SLOT", "VOLUME", "PATH", "ACCESS", "COMPONENTS"},
	Row: func(use *gql.VolumeUse) []string {
		of := "all"
		if len(use.Components) > 0 {
			of = strings.Join(use.Components, ", ")
		}
		return []string{use.Slot, use.VolumeId, use.Path, parts.Access(use.ReadOnly), of}
	},
}

// components is the table of an instance's components, with what their app says of them and what further members live
// in.
var components = command.Table[gql.ComponentRole]{
	Heading: []string{"COMPONENT", "DESIRED", "CURRENT", "HEALTHY", "SUMMARY", "APP REPORTS", "FURTHER MEMBERS IN"},
	Row: func(role *gql.ComponentRole) []string {
		said := ""
		if role.RuntimeState != nil {
			said = render.Joined(": ", string(role.RuntimeState.Health), role.RuntimeState.Summary)
		}
		return []string{
			role.ComponentKey, fmt.Sprint(role.Desired), fmt.Sprint(role.Current), fmt.Sprint(role.Healthy),
			role.Summary, said,
			intentText(role.CapacityIntent),
		}
	},
}

// intentText spells capacity that is wanted; empty for none.
func intentText(intent *gql.CapacityIntent) string {
	if intent == nil {
		return ""
	}
	gpus := ""
	if intent.GpuCount != nil {
		gpus = render.Plural(*intent.GpuCount, "GPU")
	}
	return render.Joined(" ", string(intent.Shape), gpus, intent.Sku, intent.Region)
}

var drift = command.Table[gql.Drift]{
	Heading: []string{"CODE", "MEMBER", "MESSAGE"},
	Row: func(drift *gql.Drift) []string {
		return []string{drift.Code, render.Text(drift.MemberId), drift.Message}
	},
}

var leftBehind = command.Table[gql.Orphan]{
	Heading: []string{"ID", "KIND", "OWNER", "AGE", "COST", "MESSAGE"},
	Row: func(orphan *gql.Orphan) []string {
		return []string{
			orphan.Id, string(orphan.Kind), orphan.Owner, parts.Age(orphan.AgeSeconds), parts.Money(orphan.CostSoFar),
			orphan.Message,
		}
	},
}
