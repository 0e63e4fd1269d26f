package instances

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// shares returns the commands about control planes that serve more than one project.
func shares(t *command.Tool) *cobra.Command {
	withdraw := move(t, "withdraw", "Withdraw an offer, or detach a project",
		func(ctx context.Context, id, reason string) (*gql.ControlPlaneShare, error) {
			answer, err := gql.WithdrawControlPlane(ctx, t, id, reason)
			return &answer.WithdrawControlPlane, err
		})
	command.Need(withdraw, "reason")
	return command.Group("control-planes", "Control planes that serve other projects of the tenant",
		listShares(t), offer(t),
		move(t, "accept", "Attach the project to a control plane that is offered to it",
			func(ctx context.Context, id, reason string) (*gql.ControlPlaneShare, error) {
				answer, err := gql.AcceptControlPlane(ctx, t, id, reason)
				return &answer.AcceptControlPlane, err
			}),
		move(t, "decline", "Decline an offer",
			func(ctx context.Context, id, reason string) (*gql.ControlPlaneShare, error) {
				answer, err := gql.DeclineControlPlane(ctx, t, id, reason)
				return &answer.DeclineControlPlane, err
			}),
		withdraw,
		move(t, "detach", "Detach the project from a control plane",
			func(ctx context.Context, id, reason string) (*gql.ControlPlaneShare, error) {
				answer, err := gql.DetachControlPlane(ctx, t, id, reason)
				return &answer.DetachControlPlane, err
			}),
		impact(t))
}

// move returns a command that moves one share.
func move(
	t *command.Tool, verb, short string, send func(ctx context.Context, id,
		reason string) (*gql.ControlPlaneShare, error),
) *cobra.Command {
	return command.Reasoned(t, verb+" SHARE", short, viewShare,
		func(ctx context.Context, args []string, reason string) (*gql.ControlPlaneShare, error) {
			return send(ctx, args[0], reason)
		})
}

// sharesOf reads at most limit shares that a project offers or is offered, newest first.
func sharesOf(
	ctx context.Context, t *command.Tool, project string, ended bool, limit int,
) ([]gql.ControlPlaneShare, error) {
	return command.All[gql.ControlPlaneShare](limit, func(first int, after string) (*gql.ControlPlaneSharePage, error) {
		answer, err := gql.ListControlPlaneShares(ctx, t, project, ended, first, after)
		return &answer.ControlPlaneShares, err
	})
}

// listShares returns the command that lists shares from the project's side: what it offers, and what it is offered.
func listShares(t *command.Tool) *cobra.Command {
	var ended bool
	var project string
	table := command.Table[gql.ControlPlaneShare]{
		Heading: []string{"ID", "STATUS", "CONTROL PLANE", "PLANE STATUS", "SIDE", "OFFERED", "REASON"},
		Row:     func(share *gql.ControlPlaneShare) []string { return shareRow(share, project) },
	}
	cmd := command.List(t, "list", "List the control planes that the project offers or is offered, newest first", table,
		func(ctx context.Context, _ []string, limit int) (_ []gql.ControlPlaneShare, err error) {
			if project, err = t.ProjectID(ctx); err != nil {
				return nil, err
			}
			return sharesOf(ctx, t, project, ended, limit)
		})
	cmd.Flags().BoolVar(&ended, "ended", false, "also those that have ended")
	return cmd
}

// shareRow returns a share as a project sees it.
func shareRow(share *gql.ControlPlaneShare, project string) []string {
	side := "offered by " + share.OwnerProjectId
	if share.OwnerProjectId == project {
		side = "offered to " + share.ProjectId
	}
	name, status := share.InstanceId, ""
	if plane := share.ControlPlane; plane != nil {
		name, status = fmt.Sprintf("%s (%s)", plane.Name, plane.InstanceId), string(plane.Status)
	}
	return []string{
		share.Id, string(share.Status), name, status, side, share.OfferedBy, cmp.Or(share.EndReason, share.Reason),
	}
}

// offer returns the command that offers a control plane; the other project decides whether to attach to it.
func offer(t *command.Tool) *cobra.Command {
	var input gql.OfferControlPlaneInput
	cmd := command.Verb(t, "offer INSTANCE", "Offer a shared control plane to another project of the tenant", viewShare,
		func(ctx context.Context, args []string) (_ *gql.ControlPlaneShare, err error) {
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return nil, err
			}
			answer, err := gql.OfferControlPlane(ctx, t, input)
			return &answer.OfferControlPlane, err
		})
	cmd.Example = `  appctl control-planes offer queue --to prj_2 --reason "one queue for the department"`
	cmd.Flags().StringVar(&input.ProjectId, "to", "", "the project, by id")
	cmd.Flags().StringVar(&input.Reason, "reason", "", "why; the other project reads it")
	command.Need(cmd, "to", "reason")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

func impact(t *command.Tool) *cobra.Command {
	cmd := command.Of(t, "impact INSTANCE", "Show which projects a change of an instance would affect",
		lookup.OfInstance(t), viewImpact,
		func(ctx context.Context, id string, _ []string) (*gql.Impact, error) {
			answer, err := gql.ImpactOf(ctx, t, id)
			return &answer.ImpactOf, err
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

func viewImpact(found *gql.Impact) command.View {
	shown := parts.Impact.As(found, found.Projects)
	shown.Page = func(p *render.Page) {
		p.Fields("Instance", found.InstanceId, "Serves", string(found.ControlPlaneScope),
			"Attached", render.Plural(found.AttachedTotal, "other project"),
			"Members", fmt.Sprint(found.MembersTotal), "Open operations", fmt.Sprint(found.OpenOperations))
		p.Section("Projects that it serves")
		parts.Impact.On(p, found.Projects)
	}
	return shown
}

func viewShare(share *gql.ControlPlaneShare) command.View {
	return command.Detail(share, share.Id, func(p *render.Page) {
		p.Fields("Share", share.Id, "Status", string(share.Status), "Instance", share.InstanceId,
			"Owner", share.OwnerProjectId, "Project", share.ProjectId, "Reason", share.Reason,
			"Offered", render.Joined(", ", share.OfferedBy, render.Time(&share.CreatedAt)),
			"Answered", render.Joined(", ", share.AnsweredBy, render.Time(share.AnsweredAt)),
			"Ended", render.Joined(": ", render.Time(share.EndedAt), share.EndReason))
		if share.ControlPlane != nil {
			parts.Actions.Under(p, "Actions of its app", share.ControlPlane.Actions)
		}
	})
}

// maxShares bounds the shares that are read to find one by a name.
const maxShares = 1_000

// sharedInstance returns the id of a control plane that the project is attached to, given by the instance's id or name
// or by the share's id.
func sharedInstance(ctx context.Context, t *command.Tool, project, given string) (string, error) {
	if strings.HasPrefix(given, "ins_") {
		return given, nil
	}
	found, err := sharesOf(ctx, t, project, false, maxShares)
	if err != nil {
		return "", err
	}
	var matches []string
	for _, share := range found {
		if share.Status == gql.ShareStatusAttached && share.ProjectId == project &&
			(share.Id == given || (share.ControlPlane != nil && share.ControlPlane.Name == given)) {
			matches = append(matches, share.InstanceId)
		}
	}
	switch len(matches) {
	case 0:
		return "", command.NotFoundf("the project is not attached to a control plane %q", given)
	case 1:
		return matches[0], nil
	}
	return "", command.Usagef("several control planes are named %q, give the id: %s", given,
		strings.Join(matches, ", "))
}
