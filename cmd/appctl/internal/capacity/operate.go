package capacity

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Operate returns the operators' verbs on nodes.
func Operate(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{cordon(t), uncordon(t), drain(t), retire(t), deleteNode(t)}
}

// Admin returns the verbs that enrol nodes and take them out again.
func Admin(t *command.Tool) *cobra.Command {
	return command.Group("node", "Nodes", append([]*cobra.Command{Enrol(t)}, Operate(t)...)...)
}

// onNode returns a verb on a node by its name or id. It confirms with the question asks first, unless that is empty.
func onNode(t *command.Tool, use, short, asks string, reason *string,
	call func(ctx context.Context, id string) (gql.StandingNode, error)) *cobra.Command {
	var yes bool
	cmd := t.Command(use, short, func(ctx context.Context, args []string) error {
		node, err := nodeNamed(ctx, t, args[0])
		if err != nil {
			return err
		}
		if asks != "" {
			if err := operations.Confirm(t, yes, fmt.Sprintf(asks, node.Name)); err != nil {
				return err
			}
		}
		after, err := call(ctx, node.Id)
		if err != nil {
			return err
		}
		return t.Show(command.One(&after, after.Id, "Name", after.Name, "Status", string(after.Status), "Takes members",
			taking(&after), "Drain", drained(after.Drain)))
	})
	command.ReasonFlag(cmd, reason)
	if asks != "" {
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	}
	return cmd
}

func cordon(t *command.Tool) *cobra.Command {
	var in gql.NodeOperateInput
	return onNode(t, "cordon NODE", "Keep new members off a node; members on it keep running (platform staff)", "",
		&in.Reason,
		func(ctx context.Context, id string) (gql.StandingNode, error) {
			in.NodeId = id
			answer, err := gql.CordonNode(ctx, t, in)
			return answer.CordonNode, err
		})
}

func uncordon(t *command.Tool) *cobra.Command {
	var in gql.NodeOperateInput
	return onNode(t, "uncordon NODE",
		"Let a node take members again, and members that were drained for it take work again (platform staff)", "",
		&in.Reason,
		func(ctx context.Context, id string) (gql.StandingNode, error) {
			in.NodeId = id
			answer, err := gql.UncordonNode(ctx, t, in)
			return answer.UncordonNode, err
		})
}

func drain(t *command.Tool) *cobra.Command {
	var in gql.DrainNodeInput
	var deadline time.Duration
	cmd := onNode(t, "drain NODE",
		"Drain every member on a node, each by an operation; \"nodes show\" lists what it waits for (platform staff)",
		"Every member of every tenant on node %s is drained, and the node takes no new ones.", &in.Reason,
		func(ctx context.Context, id string) (gql.StandingNode, error) {
			seconds, err := command.Seconds(deadline)
			if err != nil {
				return gql.StandingNode{}, err
			}
			in.NodeId, in.DeadlineSeconds = id, seconds
			answer, err := gql.DrainNode(ctx, t, in)
			return answer.DrainNode, err
		})
	cmd.Flags().DurationVar(&deadline, "deadline", time.Hour, "how long the drain of each member may take, 30s to 24h")
	cmd.Flags().BoolVar(&in.Force, "force", false,
		"lose the members' work at once, also in a drain that is under way; needs --reason")
	return cmd
}

func retire(t *command.Tool) *cobra.Command {
	var in gql.RetireNodeInput
	cmd := onNode(t, "retire NODE",
		"Retire a node for good, once nothing on it is rented or its machine is lost (platform staff)",
		"Node %s is retired for good.", &in.Reason,
		func(ctx context.Context, id string) (gql.StandingNode, error) {
			in.NodeId = id
			answer, err := gql.RetireNode(ctx, t, in)
			return answer.RetireNode, err
		})
	cmd.Flags().BoolVar(&in.Lost, "lost", false,
		"its machine is lost with everything on it: its allocations and members become FAILED; needs --reason")
	return cmd
}

func deleteNode(t *command.Tool) *cobra.Command {
	var yes bool
	var in gql.NodeOperateInput
	cmd := t.Command("delete NODE", "Delete a retired node from the list; its name can be used again (platform staff)",
		func(ctx context.Context, args []string) error {
			node, err := nodeNamed(ctx, t, args[0])
			if err != nil {
				return err
			}
			if err := operations.Confirm(t, yes, "Node "+node.Name+" is deleted from the list."); err != nil {
				return err
			}
			in.NodeId = node.Id
			answer, err := gql.DeleteNode(ctx, t, in)
			if err != nil {
				return err
			}
			return t.Show(command.Line(answer, "deleted "+node.Name, node.Id))
		})
	command.ReasonFlag(cmd, &in.Reason)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	return cmd
}

// fleet returns the command that shows all nodes at once.
func fleet(t *command.Tool) *cobra.Command {
	return command.Verb(t, "fleet",
		"Show capacity by region and SKU, nodes that take no members, and stuck operations (platform staff)",
		viewFleet,
		func(ctx context.Context, _ []string) (gql.Fleet, error) {
			answer, err := gql.ReadFleet(ctx, t)
			return answer.Fleet, err
		})
}

func viewFleet(found gql.Fleet) command.View {
	return command.View{JSON: found, Page: func(p *render.Page) {
		capacityTable.On(p, found.Capacity)
		nodeTable.Under(p, "Nodes that take no new members", found.Troubled)
		stuckTable.Under(p, "Stuck operations", found.Stuck)
	}}
}

var capacityTable = command.Table[gql.FleetCapacity]{
	Heading: []string{"REGION", "SKU", "NODES", "ONLINE", "ACCEPTING", "FREE NODES", "GPUS", "RENTED", "FREE"},
	Row: func(c *gql.FleetCapacity) []string {
		row := []string{c.Region, c.Sku}
		for _, n := range []int{c.Nodes, c.Online, c.Taking, c.FreeNodes, c.Gpus, c.GpusRented, c.GpusFree} {
			row = append(row, fmt.Sprint(n))
		}
		return row
	},
}

var stuckTable = command.Table[gql.StuckOperation]{
	Heading: []string{"OPERATION", "KIND", "STATE", "PROJECT", "BEGAN", "DEADLINE", "COST SO FAR", "WAITS FOR"},
	Row: func(op *gql.StuckOperation) []string {
		waits := op.Message
		if len(op.Blockers) > 0 {
			waits = op.Blockers[0].Message
		}
		return []string{op.Id, string(op.Kind), string(op.State), op.ProjectId, render.Time(&op.CreatedAt),
			render.Time(&op.Deadline), parts.Money(op.CostSoFar), waits}
	},
}
