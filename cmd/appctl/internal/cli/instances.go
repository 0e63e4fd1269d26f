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

func (t *tool) instancesCommand() *cobra.Command {
	show := t.command("show INSTANCE", "Show an instance with its members", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error { return t.showInstance(ctx, args[0]) })
	show.ValidArgsFunction = t.completeInstances
	return group("instances", "Running apps", t.instancesList(), show, t.instancesUpgrade(), t.instancesRollback(), t.instancesGenerations(),
		t.decommissionCommand(false))
}

func (t *tool) instancesList() *cobra.Command {
	var filter gql.InstanceFilter
	var statuses []string
	var limit int
	list := t.command("list", "List the project's instances, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		var err error
		if filter.Statuses, err = enums("status", statuses, gql.AllInstanceStatus); err != nil {
			return err
		}
		c, project, err := t.scope(ctx)
		if err != nil {
			return err
		}
		found, err := listInstances(ctx, c, project, filter, limit)
		if err != nil {
			return err
		}
		return t.showInstances(found)
	})
	list.Flags().StringSliceVar(&statuses, "status", nil, "only these statuses, such as running")
	list.Flags().StringVar(&filter.AppSlug, "app", "", "only this app")
	list.Flags().StringVar(&filter.Search, "search", "", "only names that contain this")
	_ = list.RegisterFlagCompletionFunc("app", t.completeApps)
	limitFlag(list, &limit)
	return list
}

func listInstances(ctx context.Context, c *client.Client, project string, filter gql.InstanceFilter, limit int) ([]gql.Instance, error) {
	return collect[gql.Instance](client.All[gql.Instance](limit, func(first int, after string) (*gql.InstancePage, error) {
		answer, err := gql.ListInstances(ctx, c, project, &filter, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Instances, nil
	}))
}

func (t *tool) showInstances(found []gql.Instance) error {
	var rows [][]string
	var ids []string
	for _, instance := range found {
		rows = append(rows, []string{
			instance.Id, instance.Name, instance.AppSlug + " " + instance.AppVersion, string(instance.Status),
			string(instance.Health), roleText(instance.Roles), render.Time(&instance.CreatedAt),
		})
		ids = append(ids, instance.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "NAME", "APP", "STATUS", "HEALTH", "MEMBERS", "CREATED"}, rows)
	}})
}

// roleText is healthy of desired members for each component.
func roleText(roles []gql.ComponentRole) string {
	var texts []string
	for _, role := range roles {
		texts = append(texts, fmt.Sprintf("%s %d/%d", role.ComponentKey, role.Healthy, role.Desired))
	}
	return strings.Join(texts, ", ")
}

// instanceID is the id of an instance given by id or name. Among instances of one name the live one is meant, else
// the newest.
func (t *tool) instanceID(ctx context.Context, c *client.Client, given string) (string, error) {
	if strings.HasPrefix(given, "ins_") {
		return given, nil
	}
	project, err := t.projectID(ctx, c)
	if err != nil {
		return "", err
	}
	found, err := listInstances(ctx, c, project, gql.InstanceFilter{Search: given}, maxNamesakes)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, instance := range found {
		if instance.Name != given {
			continue
		}
		if instance.ReleasedAt == nil {
			return instance.Id, nil
		}
		newest = firstOf(newest, instance.Id)
	}
	if newest == "" {
		return "", notFoundf("there is no instance %q in the project", given)
	}
	return newest, nil
}

// maxNamesakes bounds the instances looked at to find one by name.
const maxNamesakes = 1000

func (t *tool) instanceDetail(ctx context.Context, given string) (*client.Client, *gql.InstanceDetail, error) {
	c, err := t.connect()
	if err != nil {
		return nil, nil, err
	}
	id, err := t.instanceID(ctx, c, given)
	if err != nil {
		return nil, nil, err
	}
	answer, err := gql.GetInstance(ctx, c, id)
	if err != nil {
		return nil, nil, err
	}
	return c, &answer.Instance, nil
}

func (t *tool) showInstance(ctx context.Context, given string) error {
	_, instance, err := t.instanceDetail(ctx, given)
	if err != nil {
		return err
	}
	return t.show(view{JSON: instance, IDs: []string{instance.Id}, Page: func(p *render.Page) { pageInstance(p, instance) }})
}

func pageInstance(p *render.Page, instance *gql.InstanceDetail) {
	problem, operation := "", ""
	if instance.Failure != nil {
		problem = fmt.Sprintf("%s (%s): %s", instance.Failure.Code, instance.Failure.Owner, instance.Failure.Message)
	}
	if op := instance.LastOperation; op != nil {
		operation = fmt.Sprintf("%s %s, %s, %d%%", op.Id, op.Kind, op.State, op.Percent)
	}
	p.Fields("Instance", instance.Id, "Name", instance.Name, "App", instance.AppSlug+" "+instance.AppVersion,
		"Status", string(instance.Status), "Health", strings.TrimSpace(string(instance.Health)+" "+instance.HealthMessage),
		"Failure", problem, "Project", instance.ProjectId, "Allocations", allocationNames(instance.Allocations),
		"Last operation", operation, "Config", string(instance.Config), "Correlation id", instance.CorrelationId,
		"Generation", generationText(instance.Generation), "Observed", render.Time(instance.ObservedAt),
		"Created", render.Time(&instance.CreatedAt), "Released", render.Time(instance.ReleasedAt))
	pageTroubles(p, instance)
	p.Section("Members")
	p.Table([]string{"ID", "COMPONENT", "STATUS", "HEALTH", "NODE", "ALLOCATION", "MESSAGE"}, memberRows(instance))
	if instance.Members.PageInfo.HasNextPage {
		p.Line(fmt.Sprintf("and more than these %s", plural(len(instance.Members.Edges), "member")))
	}
	if len(instance.Actions) > 0 {
		p.Section("Actions")
		p.Table(actionHeading, actionRows(instance.Actions))
	}
}

func generationText(number int) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprint(number)
}

// pageTroubles says what keeps an instance from where it should be; nothing when nothing does.
func pageTroubles(p *render.Page, instance *gql.InstanceDetail) {
	if len(instance.Blockers) > 0 {
		p.Section("What stands in its way")
		p.Table(blockerHeading, blockerRows(instance.Blockers))
	}
	if len(instance.Drift) > 0 {
		var rows [][]string
		for _, drift := range instance.Drift {
			rows = append(rows, []string{drift.Code, render.Text(drift.MemberId), drift.Message})
		}
		p.Section("Drift")
		p.Table([]string{"CODE", "MEMBER", "MESSAGE"}, rows)
	}
	if len(instance.Orphans) > 0 {
		var rows [][]string
		for i := range instance.Orphans {
			orphan := &instance.Orphans[i]
			rows = append(rows, []string{orphan.Id, string(orphan.Kind), orphan.Owner, ageText(orphan.AgeSeconds), moneyText(orphan.CostSoFar), orphan.Message})
		}
		p.Section("Left behind")
		p.Table([]string{"ID", "KIND", "OWNER", "AGE", "COST", "MESSAGE"}, rows)
	}
}

func memberRows(instance *gql.InstanceDetail) [][]string {
	var rows [][]string
	for _, edge := range instance.Members.Edges {
		member, node, allocation := edge.Node, "", ""
		if member.Node != nil {
			node = member.Node.Name
		}
		if member.Allocation != nil {
			allocation = member.Allocation.Name
		}
		status := string(member.Status)
		if member.Cordoned {
			status += ", cordoned"
		}
		rows = append(rows, []string{
			member.Id, fmt.Sprintf("%s/%d", member.ComponentKey, member.Index), status, string(member.Health), node, allocation, member.HealthMessage,
		})
	}
	return rows
}

func allocationNames(allocations []gql.AllocationRef) string {
	var names []string
	for _, allocation := range allocations {
		names = append(names, allocation.Name)
	}
	return strings.Join(names, ", ")
}
