package controller

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/sdk/adapter/automation"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// ownAccount opens the adapter's own account; nil where no file is given.
func ownAccount(o options) (*automation.Account, error) {
	if o.account == "" {
		return nil, nil
	}
	account, err := automation.Open(o.platform, o.account)
	if err != nil {
		return nil, fmt.Errorf("--service-account-file: %w", err)
	}
	return account, nil
}

// beside runs the automation beside the server; an error of either ends both. Once the platform has answered, the log
// names the adapter's account. A wrong key is only logged: the adapter goes on with operations.
func beside(ctx context.Context, spec Spec, account *automation.Account, log *slog.Logger,
	server func(context.Context) error) error {
	if account == nil {
		return server(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server(ctx) })
	group.Go(func() error {
		introduce(ctx, account, log)
		if spec.Automate == nil {
			return nil
		}
		return spec.Automate(ctx, account, log)
	})
	return group.Wait()
}

func introduce(ctx context.Context, account *automation.Account, log *slog.Logger) {
	own, err := account.Own()
	if err != nil {
		log.Warn("the adapter has no service account", "error", err.Error())
		return
	}
	answer, err := gql.GetViewer(ctx, own)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("the adapter's service account could not be read from the platform", "error", err.Error())
	default:
		log.Info("the adapter uses its own service account", "service_account_id", answer.Viewer.Actor.Id)
	}
}
