package lookup

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxVolumes bounds the volumes among which a name is looked for; a project has no more.
const maxVolumes = 1_000

// OfVolume returns a function that returns the id of the volume which the first argument names.
func OfVolume(t *command.Tool) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, args []string) (string, error) { return Volume(ctx, t, args[0]) }
}

// Volume returns the id of a volume of the project that is given by id or name.
func Volume(ctx context.Context, t *command.Tool, given string) (string, error) {
	if strings.HasPrefix(given, "vol_") {
		return given, nil
	}
	project, err := t.ProjectID(ctx)
	if err != nil {
		return "", err
	}
	page := func(first int, after string) (*gql.VolumePage, error) {
		answer, err := gql.ListVolumes(ctx, t, project, false, first, after)
		return &answer.Volumes, err
	}
	for v, err := range client.All[gql.Volume](maxVolumes, page) {
		if err != nil {
			return "", err
		}
		if v.Name == given {
			return v.Id, nil
		}
	}
	return "", command.NotFoundf("the project has no volume %q", given)
}
