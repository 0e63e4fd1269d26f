// Package volumes is the commands about files that outlast members: the project's volumes, and the storage classes that
// operators offer.
package volumes

import (
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

// Commands returns the commands about volumes and storage classes.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("volumes", "Files of the project that outlast members", list(t), show(t), create(t), resize(t),
			remove(t), copyFiles(t), listFiles(t), removeFiles(t)),
		command.Group("storage-classes", "Kinds of storage for volumes", classes(t), createClass(t), updateClass(t)),
	}
}

func list(t *command.Tool) *cobra.Command {
	var deleted bool
	cmd := command.Pages(t, "list", "List the project's volumes, newest first", table, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.VolumePage, error) {
			answer, err := gql.ListVolumes(ctx, t, project, deleted, first, after)
			return &answer.Volumes, err
		})
	cmd.Flags().BoolVar(&deleted, "deleted", false, "also deleted ones")
	return cmd
}

var table = command.Table[gql.Volume]{
	Heading: []string{"ID", "NAME", "CLASS", "SIZE", "USED", "STATUS", "USED BY"},
	Row: func(v *gql.Volume) []string {
		names := make([]string, len(v.Users))
		for i, user := range v.Users {
			names[i] = user.InstanceName
		}
		return []string{v.Id, v.Name, v.StorageClass.Name, size(v), used(v), string(v.Status),
			strings.Join(names, ", ")}
	},
}

func size(v *gql.Volume) string { return fmt.Sprintf("%d GiB", v.SizeGiB) }

// used is what the volume holds; empty before it was measured.
func used(v *gql.Volume) string {
	if v.UsedBytes == nil {
		return ""
	}
	return render.Bytes(*v.UsedBytes)
}

func show(t *command.Tool) *cobra.Command {
	return command.Of(t, "show VOLUME", "Show a volume and who uses it", lookup.OfVolume(t), view,
		func(ctx context.Context, id string, _ []string) (*gql.Volume, error) {
			answer, err := gql.GetVolume(ctx, t, id)
			return &answer.Volume, err
		})
}

func view(v *gql.Volume) command.View {
	users := make([]string, len(v.Users))
	for i, user := range v.Users {
		users[i] = fmt.Sprintf("%s (%s at %s%s)", user.InstanceName, user.Slot, user.Path,
			render.If(user.ReadOnly, ", read only"))
	}
	return command.Fields(v, v.Id, "Volume", v.Id, "Name", v.Name, "Storage class", v.StorageClass.Name,
		"Kind", string(v.StorageClass.Kind), "Size", size(v), "Hourly cost", parts.Money(v.HourlyCost), "Used", used(v),
		"Measured", render.Time(v.MeasuredAt),
		"Status", string(v.Status), "Node", parts.NodeName(v.Node), "Used by", strings.Join(users, ", "),
		"Message", v.Message,
		"Created", render.Time(&v.CreatedAt), "Deleted", render.Time(v.DeletedAt))
}

func create(t *command.Tool) *cobra.Command {
	var input gql.CreateVolumeInput
	var plan bool
	cmd := command.Verb(t, "create NAME", "Create a volume", same,
		func(ctx context.Context, args []string) (out command.View, err error) {
			if input.ProjectId, err = t.ProjectID(ctx); err != nil {
				return out, err
			}
			input.Name = args[0]
			if plan {
				answer, err := gql.PlanCreateVolume(ctx, t, input)
				return planView(&answer.PlanCreateVolume), err
			}
			answer, err := gql.CreateVolume(ctx, t, input)
			return view(&answer.CreateVolume), err
		})
	cmd.Example = "  appctl volumes create home --class parallel --size 100"
	cmd.Flags().StringVar(&input.StorageClass, "class", "",
		"storage class, by name or id; see appctl storage-classes list")
	cmd.Flags().IntVar(&input.SizeGiB, "size", 0, "its size in GiB")
	cmd.Flags().BoolVar(&plan, "plan", false, "show what it would cost an hour; create nothing")
	command.Need(cmd, "class", "size")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// same is the view of what is one already.
func same(v command.View) command.View { return v }

// planView shows what a volume would cost.
func planView(p *gql.VolumePlan) command.View {
	return command.Fields(p, p.Volume.Name, "Volume", p.Volume.Name, "Storage class", p.Volume.StorageClass.Name,
		"Size", size(&p.Volume), "Hourly cost now", parts.Money(p.HourlyBefore),
		"Hourly cost then", render.If(p.HourlyAfter == nil, "no price set")+parts.Money(p.HourlyAfter))
}

func resize(t *command.Tool) *cobra.Command {
	var input gql.ResizeVolumeInput
	var plan bool
	cmd := command.Of(t, "resize VOLUME", "Enlarge a volume, also while it is in use", lookup.OfVolume(t), same,
		func(ctx context.Context, id string, _ []string) (command.View, error) {
			input.VolumeId = id
			if plan {
				answer, err := gql.PlanResizeVolume(ctx, t, input)
				return planView(&answer.PlanResizeVolume), err
			}
			answer, err := gql.ResizeVolume(ctx, t, input)
			return view(&answer.ResizeVolume), err
		})
	cmd.Flags().IntVar(&input.SizeGiB, "size", 0, "its new size in GiB, larger than the present one")
	cmd.Flags().BoolVar(&plan, "plan", false, "show what it would cost an hour; change nothing")
	command.Need(cmd, "size")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func remove(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Of(t, "delete VOLUME", "Delete a volume with its files, for good", lookup.OfVolume(t), view,
		func(ctx context.Context, id string, _ []string) (*gql.Volume, error) {
			answer, err := gql.DeleteVolume(ctx, t, id, reason)
			return &answer.DeleteVolume, err
		})
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}
