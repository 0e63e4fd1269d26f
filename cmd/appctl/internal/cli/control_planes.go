package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) controlPlanesCommand() *cobra.Command {
	return group("control-planes", "Control planes that serve other projects of the tenant", t.planesList(), t.planesOffer(),
		t.planesMove("accept", "Attach the project to a control plane that it is offered", func(ctx context.Context, c *client.Client, id, reason string) (*gql.ControlPlaneShare, error) {
			answer, err := gql.AcceptControlPlane(ctx, c, id, reason)
			if err != nil {
				return nil, err
			}
			return &answer.AcceptControlPlane, nil
		}),
		t.planesMove("decline", "Say no to an offer", func(ctx context.Context, c *client.Client, id, reason string) (*gql.ControlPlaneShare, error) {
			answer, err := gql.DeclineControlPlane(ctx, c, id, reason)
			if err != nil {
				return nil, err
			}
			return &answer.DeclineControlPlane, nil
		}),
		t.planesMove("withdraw", "Take an offer back, or put an attached project out", func(ctx context.Context, c *client.Client, id, reason string) (*gql.ControlPlaneShare, error) {
			answer, err := gql.WithdrawControlPlane(ctx, c, id, reason)
			if err != nil {
				return nil, err
			}
			return &answer.WithdrawControlPlane, nil
		}),
		t.planesMove("detach", "Leave a control plane", func(ctx context.Context, c *client.Client, id, reason string) (*gql.ControlPlaneShare, error) {
			answer, err := gql.DetachControlPlane(ctx, c, id, reason)
			if err != nil {
				return nil, err
			}
			return &answer.DetachControlPlane, nil
		}),
		t.planesImpact())
}

// shares reads the shares of a project.
func shares(ctx context.Context, c *client.Client, project string, ended bool, limit int) ([]gql.ControlPlaneShare, error) {
	return collect[gql.ControlPlaneShare](client.All[gql.ControlPlaneShare](limit, func(first int, after string) (*gql.ControlPlaneSharePage, error) {
		answer, err := gql.ListControlPlaneShares(ctx, c, project, ended, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.ControlPlaneShares, nil
	}))
}

func (t *tool) planesList() *cobra.Command {
	var ended bool
	var limit int
	list := t.command("list", "List what the project offers and is offered, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := shares(ctx, c, project, ended, limit)
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for i := range found {
			share := &found[i]
			side := "offered by " + share.OwnerProjectId
			if share.OwnerProjectId == project {
				side = "offered to " + share.ProjectId
			}
			name, status := share.InstanceId, ""
			if plane := share.ControlPlane; plane != nil {
				name, status = fmt.Sprintf("%s (%s)", plane.Name, plane.InstanceId), string(plane.Status)
			}
			rows = append(rows, []string{share.Id, string(share.Status), name, status, side, share.OfferedBy, firstOf(share.EndReason, share.Reason)})
			ids = append(ids, share.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "STATUS", "CONTROL PLANE", "IT IS", "SIDE", "OFFERED", "REASON"}, rows)
		}})
	})
	list.Flags().BoolVar(&ended, "ended", false, "those that have ended as well")
	limitFlag(list, &limit)
	return list
}

func (t *tool) planesOffer() *cobra.Command {
	var input gql.OfferControlPlaneInput
	offer := t.command("offer INSTANCE", "Offer a shared control plane to another project of the tenant", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		if input.InstanceId, err = t.instanceID(ctx, c, args[0]); err != nil {
			return err
		}
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.OfferControlPlane(ctx, c, input)
		if err != nil {
			return err
		}
		return t.showShare(&answer.OfferControlPlane)
	})
	offer.Example = `  appctl control-planes offer queue --to prj_2 --reason "one queue for the department"`
	offer.Flags().StringVar(&input.ProjectId, "to", "", "the project, by id")
	offer.Flags().StringVar(&input.Reason, "reason", "", "why; the other project reads it")
	_ = offer.MarkFlagRequired("to")
	_ = offer.MarkFlagRequired("reason")
	keyFlag(offer, &input.IdempotencyKey)
	offer.ValidArgsFunction = t.completeInstances
	return offer
}

// planesMove is a command that moves one share; to withdraw takes a reason.
func (t *tool) planesMove(verb, short string, send func(ctx context.Context, c *client.Client, id, reason string) (*gql.ControlPlaneShare, error)) *cobra.Command {
	var reason string
	move := t.command(verb+" SHARE", short, cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		share, err := send(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		return t.showShare(share)
	})
	move.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	if verb == "withdraw" {
		_ = move.MarkFlagRequired("reason")
	}
	return move
}

func (t *tool) planesImpact() *cobra.Command {
	impact := t.command("impact INSTANCE", "Show whom a change of an instance would touch", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		id, err := t.instanceID(ctx, c, args[0])
		if err != nil {
			return err
		}
		answer, err := gql.ImpactOf(ctx, c, id)
		if err != nil {
			return err
		}
		found := &answer.ImpactOf
		var ids []string
		for _, project := range found.Projects {
			ids = append(ids, project.ProjectId)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Fields("Instance", found.InstanceId, "Serves", string(found.ControlPlaneScope), "Attached", plural(found.AttachedTotal, "other project"),
				"Members", fmt.Sprint(found.MembersTotal), "Open operations", fmt.Sprint(found.OpenOperations))
			p.Section("Projects that it serves")
			pageImpact(p, found)
		}})
	})
	impact.ValidArgsFunction = t.completeInstances
	return impact
}

func pageImpact(p *render.Page, impact *gql.Impact) {
	var rows [][]string
	for i := range impact.Projects {
		project := &impact.Projects[i]
		since := "its own"
		if project.AttachedAt != nil {
			since = render.Time(project.AttachedAt)
		}
		rows = append(rows, []string{project.ProjectId, project.DisplayName, since, fmt.Sprint(project.Subjects), fmt.Sprint(project.RecentActions)})
	}
	p.Table([]string{"PROJECT", "NAME", "ATTACHED", "CAN USE IT", "ACTIONS IN 24 H"}, rows)
}

func (t *tool) showShare(share *gql.ControlPlaneShare) error {
	return t.show(view{JSON: share, IDs: []string{share.Id}, Page: func(p *render.Page) {
		p.Fields("Share", share.Id, "Status", string(share.Status), "Instance", share.InstanceId, "Owner", share.OwnerProjectId, "Project", share.ProjectId,
			"Reason", share.Reason, "Offered", joined(", ", share.OfferedBy, render.Time(&share.CreatedAt)),
			"Answered", joined(", ", share.AnsweredBy, render.Time(share.AnsweredAt)), "Ended", joined(": ", render.Time(share.EndedAt), share.EndReason))
		if share.ControlPlane != nil && len(share.ControlPlane.Actions) > 0 {
			p.Section("What its app can be asked to do")
			p.Table(actionHeading, actionRows(share.ControlPlane.Actions))
		}
	}})
}

// maxShares is how many shares are looked through for a name.
const maxShares = 1_000

// sharedInstance is the id of a control plane that the project is attached to, given by the instance's id or name or
// by the share's id.
func sharedInstance(ctx context.Context, c *client.Client, project, given string) (string, error) {
	if strings.HasPrefix(given, "ins_") {
		return given, nil
	}
	found, err := shares(ctx, c, project, false, maxShares)
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
		return "", notFoundf("the project is attached to no control plane %q", given)
	case 1:
		return matches[0], nil
	}
	return "", usagef("several control planes are named %q, give the id: %s", given, strings.Join(matches, ", "))
}
