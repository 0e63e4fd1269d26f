// Package members is the commands about members of instances: the processes of a component on a node.
package members

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxMembers bounds the members that are read to find one by its place.
const maxMembers = 10000

const help = `A MEMBER is given by its id, or by instance, component and number: demo/worker/0.`

// Command returns the commands about members.
func Command(t *command.Tool) *cobra.Command {
	members := command.Group("members", "The members of instances", list(t), show(t), add(t), scale(t), drain(t),
		cordon(t), uncordon(t), label(t), remove(t), replace(t), restore(t))
	members.Long = "Members of instances: the processes of a component on a node.\n\n" + help
	return members
}

func show(t *command.Tool) *cobra.Command {
	of := func(ctx context.Context, args []string) (string, error) { return find(ctx, t, args[0]) }
	return command.Of(t, "show MEMBER", "Show a member", of,
		func(member *gql.Member) command.View {
			return command.Detail(member, member.Id, func(p *render.Page) { page(p, member) })
		},
		func(ctx context.Context, id string, _ []string) (*gql.Member, error) {
			answer, err := gql.GetMember(ctx, t, id)
			return &answer.Member, err
		})
}

// list returns the command that lists members. Removed ones are kept as records, and shown only with --all.
func list(t *command.Tool) *cobra.Command {
	var component string
	var all bool
	cmd := command.List(t, "list INSTANCE", "List an instance's members", table,
		func(ctx context.Context, args []string, limit int) ([]gql.Member, error) {
			id, err := lookup.Instance(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			found, err := of(ctx, t, id, limit)
			return slices.DeleteFunc(found, func(member gql.Member) bool {
				return component != "" && member.ComponentKey != component ||
					!all && member.Status == gql.MemberStatusRemoved
			}), err
		})
	cmd.Flags().StringVar(&component, "component", "", "only this component")
	cmd.Flags().BoolVar(&all, "all", false, "removed members as well")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// of reads at most limit members of an instance.
func of(ctx context.Context, t *command.Tool, instance string, limit int) ([]gql.Member, error) {
	return command.All[gql.Member](limit, func(first int, after string) (*gql.MemberPage, error) {
		answer, err := gql.ListMembers(ctx, t, instance, first, after)
		return &answer.Instance.Members, err
	})
}

var table = command.Table[gql.Member]{
	Heading: []string{"ID", "COMPONENT", "STATUS", "HEALTH", "NODE", "ALLOCATION", "LABELS", "LAST OPERATION"},
	Row: func(member *gql.Member) []string {
		last := ""
		if op := member.LastOperation; op != nil {
			last = fmt.Sprintf("%s %s", op.Kind, op.State)
		}
		return []string{
			member.Id, name(member), parts.MemberStatus(member.Status, member.Cordoned), string(member.Health),
			parts.NodeName(member.Node), parts.AllocationName(member.Allocation), labelText(member.Labels), last,
		}
	},
}

// page shows a member.
func page(p *render.Page, member *gql.Member) {
	p.Fields("Member", member.Id, "Component", name(member), "Instance", member.InstanceId,
		"Status", parts.MemberStatus(member.Status, member.Cordoned),
		"Health", render.Joined(" ", string(member.Health), member.HealthMessage), "Node", parts.NodeName(member.Node),
		"Allocation", parts.AllocationName(member.Allocation), "Walls",
		parts.Walls(member.Profile, member.IsolationClass),
		"Labels", labelText(member.Labels),
		"Last operation", parts.Progress(member.LastOperation), "Adapter's detail",
		render.Document(member.AdapterDetail),
		"Correlation id", member.CorrelationId, "Created", render.Time(&member.CreatedAt),
		"Changed", render.Time(&member.UpdatedAt))
}

// name returns a member's place, such as worker/0.
func name(member *gql.Member) string { return parts.MemberName(member.ComponentKey, member.Index) }

// labels reads a member's labels; what is not an object of texts has none.
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

// find returns the id of a member given by id, or by instance, component and number. Of several that had the place,
// the one that is not removed is meant, else the newest. It connects first.
func find(ctx context.Context, t *command.Tool, given string) (string, error) {
	if _, err := t.Connect(); err != nil || strings.HasPrefix(given, "mem_") {
		return given, err
	}
	place := strings.Split(given, "/")
	if len(place) != 3 {
		return "", command.Usagef("%q: must be a member's id, or instance/component/number such as demo/worker/0",
			given)
	}
	index, err := strconv.Atoi(place[2])
	if err != nil {
		return "", command.Usagef("%q: must end with the member's number in its component, such as demo/worker/0",
			given)
	}
	instance, err := lookup.Instance(ctx, t, place[0])
	if err != nil {
		return "", err
	}
	found, err := of(ctx, t, instance, maxMembers)
	if err != nil {
		return "", err
	}
	id := placed(found, place[1], index)
	if id == "" {
		return "", command.NotFoundf("the instance %s has no member %s/%d", place[0], place[1], index)
	}
	return id, nil
}

// placed returns the id of the member at a place; empty for none.
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
