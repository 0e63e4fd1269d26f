package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxMembers bounds the members looked at to find one by its place.
const maxMembers = 10000

const memberHelp = `A MEMBER is given by its id, or by instance, component and number: demo/worker/0.`

func (t *tool) membersCommand() *cobra.Command {
	show := t.command("show MEMBER", "Show a member", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, id, err := t.memberID(ctx, args[0])
		if err != nil {
			return err
		}
		answer, err := gql.GetMember(ctx, c, id)
		if err != nil {
			return err
		}
		return t.show(view{JSON: answer.Member, IDs: []string{id}, Page: func(p *render.Page) { pageMember(p, &answer.Member) }})
	})
	members := group("members", "What instances are made of", t.membersList(), show, t.membersAdd(), t.membersDrain(), t.membersCordon(),
		t.membersUncordon(), t.membersLabel(), t.membersRemove(), t.membersReplace(), t.membersRecover())
	members.Long = "Members of instances: the processes of a component on a node.\n\n" + memberHelp
	return members
}

func (t *tool) membersList() *cobra.Command {
	var component string
	var all bool
	var limit int
	list := t.command("list INSTANCE", "List an instance's members", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		id, err := t.instanceID(ctx, c, args[0])
		if err != nil {
			return err
		}
		found, err := listMembers(ctx, c, id, limit)
		if err != nil {
			return err
		}
		return t.showMembers(slices.DeleteFunc(found, func(member gql.Member) bool {
			return component != "" && member.ComponentKey != component || !all && member.Status == gql.MemberStatusRemoved
		}))
	})
	list.Flags().StringVar(&component, "component", "", "only this component")
	list.Flags().BoolVar(&all, "all", false, "removed members as well")
	list.ValidArgsFunction = t.completeInstances
	limitFlag(list, &limit)
	return list
}

func listMembers(ctx context.Context, c *client.Client, instance string, limit int) ([]gql.Member, error) {
	return collect[gql.Member](client.All[gql.Member](limit, func(first int, after string) (*gql.MemberPage, error) {
		answer, err := gql.ListMembers(ctx, c, instance, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Instance.Members, nil
	}))
}

func (t *tool) showMembers(found []gql.Member) error {
	var rows [][]string
	var ids []string
	for i := range found {
		member := &found[i]
		rows = append(rows, []string{
			member.Id, memberName(member), memberStatus(member), string(member.Health), nodeName(member.Node), refName(member.Allocation),
			labelText(member.Labels), lastText(member.LastOperation),
		})
		ids = append(ids, member.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "COMPONENT", "STATUS", "HEALTH", "NODE", "ALLOCATION", "LABELS", "LAST OPERATION"}, rows)
	}})
}

func pageMember(p *render.Page, member *gql.Member) {
	last := ""
	if op := member.LastOperation; op != nil {
		last = fmt.Sprintf("%s %s, %s, %d%%", op.Id, op.Kind, op.State, op.Percent)
	}
	p.Fields("Member", member.Id, "Component", memberName(member), "Instance", member.InstanceId, "Status", memberStatus(member),
		"Health", strings.TrimSpace(string(member.Health)+" "+member.HealthMessage), "Node", nodeName(member.Node),
		"Allocation", refName(member.Allocation), "Labels", labelText(member.Labels), "Last operation", last,
		"Adapter's detail", jsonText(member.AdapterDetail), "Correlation id", member.CorrelationId,
		"Created", render.Time(&member.CreatedAt), "Changed", render.Time(&member.UpdatedAt))
}

// memberName is a member's component and number, such as worker/0.
func memberName(member *gql.Member) string {
	return fmt.Sprintf("%s/%d", member.ComponentKey, member.Index)
}

func memberStatus(member *gql.Member) string {
	if member.Cordoned {
		return string(member.Status) + ", cordoned"
	}
	return string(member.Status)
}

func nodeName(node *gql.NodeRef) string {
	if node == nil {
		return ""
	}
	return node.Name
}

func refName(allocation *gql.AllocationRef) string {
	if allocation == nil {
		return ""
	}
	return allocation.Name
}

func lastText(op *gql.Operation) string {
	if op == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", op.Kind, op.State)
}

// labels reads a member's labels; what is no object of texts has none.
func labels(text json.RawMessage) map[string]string {
	found := map[string]string{}
	if json.Unmarshal(text, &found) != nil || found == nil {
		return map[string]string{}
	}
	return found
}

func labelText(text json.RawMessage) string {
	found := labels(text)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		pairs = append(pairs, name+"="+found[name])
	}
	return strings.Join(pairs, ",")
}

// memberID is the client and the id of a member given by id, or by instance, component and number. Of several that
// had the place, the one that is not removed is meant, else the newest.
func (t *tool) memberID(ctx context.Context, given string) (*client.Client, string, error) {
	c, err := t.connect()
	if err != nil || strings.HasPrefix(given, "mem_") {
		return c, given, err
	}
	parts := strings.Split(given, "/")
	if len(parts) != 3 {
		return nil, "", usagef("%q: must be a member's id, or instance/component/number such as demo/worker/0", given)
	}
	index, err := strconv.Atoi(parts[2])
	if err != nil {
		return nil, "", usagef("%q: must end with the member's number in its component, such as demo/worker/0", given)
	}
	instance, err := t.instanceID(ctx, c, parts[0])
	if err != nil {
		return nil, "", err
	}
	found, err := listMembers(ctx, c, instance, maxMembers)
	if err != nil {
		return nil, "", err
	}
	id := placed(found, parts[1], index)
	if id == "" {
		return nil, "", notFoundf("the instance %s has no member %s/%d", parts[0], parts[1], index)
	}
	return c, id, nil
}

// placed is the id of the member at a place; empty for none.
func placed(members []gql.Member, component string, index int) string {
	var newest *gql.Member
	for i := range members {
		member := &members[i]
		if member.ComponentKey != component || member.Index != index {
			continue
		}
		if member.Status != gql.MemberStatusRemoved {
			return member.Id
		}
		if newest == nil || member.CreatedAt.After(newest.CreatedAt) {
			newest = member
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Id
}
