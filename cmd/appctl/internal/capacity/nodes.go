package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func nodes(t *command.Tool) *cobra.Command {
	list := command.Pages(t, "nodes",
		"List the enrolled nodes (platform staff); see its subcommands for what to do with one",
		nodeTable, nil,
		func(ctx context.Context, _ string, first int, after string) (*gql.StandingNodePage, error) {
			answer, err := gql.ListNodes(ctx, t, first, after)
			return &answer.Nodes, err
		})
	list.AddCommand(showNode(t), rented(t), fleet(t), wallsOf(t))
	list.AddCommand(Operate(t)...)
	return list
}

var nodeTable = command.Table[gql.StandingNode]{
	Heading: []string{"ID", "NAME", "STATUS", "MEMBERS", "ADDRESS", "CPUS", "MEMORY MIB", "GPUS", "ISOLATION",
		"LAST SEEN"},
	Row: func(node *gql.StandingNode) []string {
		return []string{
			node.Id, node.Name, string(node.Status), taking(node), node.Address, fmt.Sprint(node.Cpus),
			fmt.Sprint(node.MemoryMiB),
			gpus(node), offered(&node.ComputeNode), render.Time(node.LastSeenAt),
		}
	},
}

func gpus(node *gql.StandingNode) string {
	return render.Joined(" ", fmt.Sprint(node.Gpus), node.GpuModel, render.If(node.GpusSimulated, "(simulated)"))
}

// taking returns in a word or two whether a node takes new members, and why not.
func taking(node *gql.StandingNode) string {
	barring := slices.IndexFunc(node.Conditions, func(c gql.NodeCondition) bool {
		return c.Effect == gql.NodeConditionEffectNoNewMembers
	})
	switch {
	case node.Status == gql.NodeStatusRetired:
		return render.Joined(" ", "no: retired", render.If(node.Lost, "as lost"))
	case node.Drain != nil && node.Drain.Ending:
		return "yes: its drain is being canceled"
	case node.Drain != nil:
		return render.Joined(" ", "no: drained", render.If(node.Drain.Force, "by force"))
	case node.Cordoned:
		return "no: cordoned"
	case barring >= 0:
		return fmt.Sprintf("no: %s is %s", node.Conditions[barring].Name, node.Conditions[barring].State)
	case node.Status != gql.NodeStatusOnline:
		return "no: its agent does not answer"
	}
	return "yes"
}

var conditionTable = command.Table[gql.NodeCondition]{
	Heading: []string{"CHECK", "STATE", "SINCE", "EFFECT", "FOUND"},
	Row: func(c *gql.NodeCondition) []string {
		return []string{c.Name, string(c.State), render.Time(&c.Since), string(c.Effect), c.Message}
	},
}

// nodeNamed finds a node by its id or name.
func nodeNamed(ctx context.Context, t *command.Tool, name string) (*gql.StandingNode, error) {
	found, err := command.All[gql.StandingNode](maxRows, func(first int, after string) (*gql.StandingNodePage, error) {
		answer, err := gql.ListNodes(ctx, t, first, after)
		return &answer.Nodes, err
	})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(found, func(one gql.StandingNode) bool { return one.Name == name || one.Id == name })
	if at < 0 {
		return nil, &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("no node is named %q", name)}
	}
	return &found[at], nil
}

// standing is a node with its members, as JSON.
type standing struct {
	Node    gql.StandingNode `json:"node"`
	Members []gql.NodeMember `json:"members"`
}

// showNode returns the command that shows a node: its conditions, and the members of every tenant with what each waits
// for.
func showNode(t *command.Tool) *cobra.Command {
	return command.Verb(t, "show NODE",
		"Show a node: its conditions, its members, and what its drain waits for (platform staff)", viewNode,
		func(ctx context.Context, args []string) (*standing, error) {
			node, err := nodeNamed(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			answer, err := gql.ListNodeMembers(ctx, t, node.Id, "")
			if err != nil {
				return nil, err
			}
			return &standing{Node: *node, Members: answer.NodeMembers}, nil
		})
}

func viewNode(found *standing) command.View {
	node := &found.Node
	return command.Detail(found, node.Id, func(p *render.Page) {
		p.Fields("Id", node.Id, "Name", node.Name, "Status", string(node.Status), "Takes members", taking(node),
			"Reason", node.CordonReason, "Cordoned since", render.Time(node.CordonedAt), "Drain", drained(node.Drain),
			"GPUs", gpus(node), "Region and SKU", render.Joined(" ", node.Region, node.Sku),
			"Agent", node.AgentVersion, "Last seen", render.Time(node.LastSeenAt), "Booted", render.Time(node.BootedAt),
			"Retired", render.Time(node.RetiredAt))
		conditionTable.Under(p, "Results of its checks", node.Conditions)
		lodgers.Under(p, "Members", found.Members)
	})
}

func drained(drain *gql.NodeDrain) string {
	if drain == nil {
		return ""
	}
	return render.Joined(", ", "since "+render.Time(&drain.Since)+" by "+drain.By, drain.Reason,
		render.If(drain.Force, "by force"), render.If(drain.Ending, "being canceled"))
}

var lodgers = command.Table[gql.NodeMember]{
	Heading: []string{"MEMBER", "TENANT", "PROJECT", "INSTANCE", "COMPONENT", "STATUS", "HEALTH", "OPERATION",
		"WAITS FOR"},
	Row: func(m *gql.NodeMember) []string {
		operation, waits := "", ""
		if m.Operation != nil {
			operation, waits = string(m.Operation.Kind)+" "+m.Operation.Id, m.Operation.Message
			if len(m.Operation.Blockers) > 0 {
				waits = m.Operation.Blockers[0].Message
			}
		}
		if m.Refusal != nil {
			waits = m.Refusal.Code + ": " + m.Refusal.Message
		}
		return []string{
			m.MemberId, m.Tenant, m.Project, m.InstanceName, fmt.Sprintf("%s %d", m.ComponentKey, m.Index),
			string(m.Status),
			string(m.Health), operation, waits,
		}
	},
}

// rented returns the command that lists the nodes of the project's allocations with their conditions.
func rented(t *command.Tool) *cobra.Command {
	return command.Verb(t, "rented", "List the nodes that the project rents, and what keeps new members away from each",
		rentedTable.View, func(ctx context.Context, _ []string) ([]gql.RentedAllocation, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			found := []gql.RentedAllocation{}
			for after := ""; ; {
				answer, err := gql.RentedNodes(ctx, t, project, after)
				if err != nil {
					return nil, err
				}
				for _, edge := range answer.Allocations.Edges {
					if edge.Node.Node != nil {
						found = append(found, edge.Node)
					}
				}
				if !answer.Allocations.PageInfo.HasNextPage {
					return found, nil
				}
				after = *answer.Allocations.PageInfo.EndCursor
			}
		})
}

var rentedTable = command.Table[gql.RentedAllocation]{
	Heading: []string{"ALLOCATION", "NODE", "STATUS", "NEW MEMBERS", "WHY"},
	Row: func(one *gql.RentedAllocation) []string {
		why := one.Node.CordonReason
		for _, condition := range one.Node.Conditions {
			if condition.Effect == gql.NodeConditionEffectNoNewMembers && !one.Node.Cordoned {
				why = condition.Message
			}
		}
		return []string{one.Name, one.Node.Name, string(one.Node.Status), taking(one.Node), why}
	},
}

// Enrol returns the command that mints a one-time token for a node's agent.
func Enrol(t *command.Tool) *cobra.Command {
	var input gql.CreateNodeEnrolmentInput
	var ttl time.Duration
	cmd := command.Verb(t, "enrol [NAME]", "Create a one-time token for a node's agent",
		func(made gql.NodeEnrolment) command.View {
			return command.Secret(made, made.Token, "Enrolment token", made.Token, "Works until",
				render.Time(&made.ExpiresAt))
		},
		func(ctx context.Context, args []string) (gql.NodeEnrolment, error) {
			if ttl < time.Minute || ttl%time.Minute != 0 {
				return gql.NodeEnrolment{}, command.Usagef("--ttl %s: must be whole minutes", ttl)
			}
			if len(args) == 1 {
				input.Name = args[0]
			}
			input.TtlMinutes = int(ttl / time.Minute)
			answer, err := gql.CreateNodeEnrolment(ctx, t, input)
			return answer.CreateNodeEnrolment, err
		})
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it can be used, 1m to 24h")
	return cmd
}
