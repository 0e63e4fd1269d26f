package capacity

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxRows bounds the allocations or nodes that a look-up reads.
const maxRows = 10_000

// walls reads the flags that demand walls; empty ones demand none.
func walls(input *gql.RequestAllocationInput, isolation, profile string) (err error) {
	if isolation != "" {
		if input.IsolationClass, err = command.Enum("isolation", isolation, gql.AllIsolationClass); err != nil {
			return err
		}
	}
	if profile != "" {
		input.MemberProfile, err = command.Enum("profile", profile, gql.AllMemberProfile)
	}
	return err
}

// devices returns the command that lists the GPUs that allocations hold.
func devices(t *command.Tool) *cobra.Command {
	return command.Verb(t, "devices ALLOCATION", "List the GPUs of an allocation, by identity", deviceTable.View,
		func(ctx context.Context, args []string) ([]gql.Device, error) {
			ids, err := lookup.AllocationIDs(ctx, t, args)
			if err != nil {
				return nil, err
			}
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			found, err := lookup.Allocations(ctx, t, project, nil, maxRows)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(found, func(one gql.Allocation) bool { return one.Id == ids[0] })
			if at < 0 {
				return nil, fmt.Errorf("allocation %s is not in the project", ids[0])
			}
			return found[at].Devices, nil
		})
}

var deviceTable = command.Table[gql.Device]{
	Heading: []string{"INDEX", "UUID", "PCI", "PATH", "MODEL", "MEMORY MIB", "SIMULATED"},
	Row: func(device *gql.Device) []string {
		return []string{
			fmt.Sprint(device.Index), device.Uuid, device.PciAddress, device.Path, device.Model,
			fmt.Sprint(device.MemoryMiB),
			render.YesNo(device.Simulated),
		}
	},
}

// wallsOf returns the command that shows what keeps members apart on a node, and its GPUs.
func wallsOf(t *command.Tool) *cobra.Command {
	return command.Verb(t, "walls NODE",
		"Show what isolates members on a node, which isolation it lacks, and its GPUs (platform staff)", viewWalls,
		func(ctx context.Context, args []string) (*gql.ComputeNode, error) {
			found, err := nodeNamed(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			return &found.ComputeNode, nil
		})
}

// viewWalls shows a node's walls, gaps and devices.
func viewWalls(node *gql.ComputeNode) command.View {
	return command.Detail(node, node.Id, func(p *render.Page) {
		if node.Walls == nil {
			p.Fields("Node", node.Name, "Isolation", string(node.Isolation), "Walls",
				"not reported: its agent is too old to report them")
		} else {
			p.Fields("Node", node.Name, "Classes", listed(node.Walls.Classes), "Profiles", listed(node.Walls.Profiles),
				"Runtime", render.Joined(" ", node.Walls.Runtime, node.Walls.RuntimeVersion), "Control groups",
				cgroups(node.Walls.CgroupVersion))
			gapTable.Under(p, "Missing isolation", node.Walls.Gaps)
		}
		deviceTable.Under(p, "GPUs", node.Devices)
	})
}

var gapTable = command.Table[gql.IsolationGap]{
	Heading: []string{"WALL", "WHY"},
	Row:     func(gap *gql.IsolationGap) []string { return []string{string(gap.Wall), gap.Reason} },
}

// offered is a node's isolation in the list of nodes.
func offered(node *gql.ComputeNode) string {
	switch {
	case node.Walls == nil:
		return string(node.Isolation)
	case len(node.Walls.Classes) == 0:
		return "none: it cannot start members"
	}
	return render.Joined(" ", listed(node.Walls.Classes),
		render.If(len(node.Walls.Gaps) > 0, fmt.Sprintf("(%s)", render.Plural(len(node.Walls.Gaps), "gap"))))
}

func listed[T ~string](values []T) string {
	text := ""
	for i, value := range values {
		if i > 0 {
			text += ", "
		}
		text += string(value)
	}
	return text
}

func cgroups(version int) string {
	if version == 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", version)
}
