package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) appCreate() *cobra.Command {
	var input gql.CreateAppInput
	create := t.command("create SLUG", "Add an app to the catalog", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		input.Slug, input.DisplayName = args[0], firstOf(input.DisplayName, args[0])
		input.IdempotencyKey = key(input.IdempotencyKey)
		answer, err := gql.CreateApp(ctx, c, input)
		if err != nil {
			return err
		}
		made := answer.CreateApp
		return t.showOne(made, made.Id, "Slug", made.Slug, "Name", made.DisplayName, "Family", made.PermissionFamily)
	})
	create.Flags().StringVar(&input.DisplayName, "display-name", "", "name for people; the slug if not given")
	create.Flags().StringVar(&input.Summary, "summary", "", "one line on what it is")
	create.Flags().StringVar(&input.PublisherProjectId, "publisher", "", "id of the project that publishes it; the platform's staff alone if not given")
	create.Flags().StringVar(&input.PermissionFamily, "family", "apps", "family of its permission keys: apps or scheduler")
	keyFlag(create, &input.IdempotencyKey)
	return create
}

func (t *tool) adapterList() *cobra.Command {
	var limit int
	list := t.command("list", "List the registered adapters", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := collect[gql.Adapter](client.All[gql.Adapter](limit, func(first int, after string) (*gql.AdapterPage, error) {
			answer, err := gql.ListAdapters(ctx, c, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Adapters, nil
		}))
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for _, adapter := range found {
			rows = append(rows, []string{adapter.Id, adapter.Name, adapter.Url, render.Time(adapter.LastSeenAt), adapter.LastError})
			ids = append(ids, adapter.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "NAME", "URL", "LAST SEEN", "LAST ERROR"}, rows)
		}})
	})
	limitFlag(list, &limit)
	return list
}

func (t *tool) adapterRegister() *cobra.Command {
	return t.command("register NAME URL", "Register an adapter, or change its address", cobra.ExactArgs(2), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RegisterAdapter(ctx, c, gql.RegisterAdapterInput{Name: args[0], Url: args[1]})
		if err != nil {
			return err
		}
		made := answer.RegisterAdapter
		return t.showOne(made, made.Id, "Name", made.Name, "URL", made.Url, "Last seen", render.Time(made.LastSeenAt), "Last error", made.LastError)
	})
}
