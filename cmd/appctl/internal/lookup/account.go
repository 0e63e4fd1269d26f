package lookup

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Account returns the id of a service account of the project that is given by id or name.
func Account(ctx context.Context, t *command.Tool, given string) (string, error) {
	if strings.HasPrefix(given, "sa_") {
		return given, nil
	}
	project, err := t.ProjectID(ctx)
	if err != nil {
		return "", err
	}
	found, err := command.All[gql.ServiceAccount](maxNamesakes,
		func(first int, after string) (*gql.ServiceAccountPage, error) {
			answer, err := gql.ListServiceAccounts(ctx, t, project, first, after)
			return &answer.ServiceAccounts, err
		})
	if err != nil {
		return "", err
	}
	for _, one := range found {
		if one.Name == given {
			return one.Id, nil
		}
	}
	return "", command.NotFoundf("there is no service account %q in the project", given)
}
