package members

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Located returns the member that is given by id, or by instance, component and number. It connects first.
func Located(ctx context.Context, t *command.Tool, given string) (*gql.Member, error) {
	id, err := find(ctx, t, given)
	if err != nil {
		return nil, err
	}
	answer, err := gql.GetMember(ctx, t, id)
	if err != nil {
		return nil, err
	}
	return &answer.Member, nil
}

// Bound returns the members of an instance that are on a node, by component and number.
func Bound(ctx context.Context, t *command.Tool, instance string) ([]gql.Member, error) {
	found, err := of(ctx, t, instance, maxMembers)
	return slices.DeleteFunc(found, func(member gql.Member) bool {
		return member.Status == gql.MemberStatusRemoved || member.Node == nil
	}), err
}
