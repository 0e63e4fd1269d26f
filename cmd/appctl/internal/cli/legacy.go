package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
)

// What commands that have not moved to a package of their own still call by its old name.

type tool struct{ *command.Tool }

type view = command.View

var (
	group        = command.Group
	usagef       = command.Usagef
	invalidf     = command.Invalidf
	notFoundf    = command.NotFoundf
	keyFlag      = command.KeyFlag
	key          = command.Key
	reasonFlag   = command.ReasonFlag
	neededReason = command.NeededReasonFlag
	seconds      = command.Seconds
	instant      = command.Instant
	plural       = render.Plural
	yes          = render.Yes
	yesNo        = render.YesNo
	joined       = render.Joined
	jsonText     = render.Document
	published    = command.Published
	away         = command.Unavailable
)

func usageError(err error) error { return command.Usage(err) }

func firstOf(texts ...string) string { return cmp.Or(texts...) }

func enums[T ~string](flag string, given []string, known []T) ([]T, error) {
	return command.Enums(flag, given, known)
}

func (t *tool) command(use, short string, args cobra.PositionalArgs, run func(context.Context, []string) error) *cobra.Command {
	cmd := t.Command(use, short, run)
	cmd.Args = args
	return cmd
}

func (t *tool) connect() (*client.Client, error) { return t.Connect() }

func (t *tool) scope(ctx context.Context) (*client.Client, string, error) {
	c, err := t.Connect()
	if err != nil {
		return nil, "", err
	}
	project, err := t.ProjectID(ctx)
	return c, project, err
}

func (t *tool) projectID(ctx context.Context, _ *client.Client) (string, error) {
	return t.ProjectID(ctx)
}

func (t *tool) show(v view) error { return t.Show(v) }

func (t *tool) showOne(answer any, id string, pairs ...string) error {
	return t.Show(command.One(answer, id, pairs...))
}

func (t *tool) showSecret(answer any, secret string, pairs ...string) error {
	return t.Show(command.Secret(answer, secret, pairs...))
}

func (t *tool) document(flag, path string, pairs []string) ([]byte, error) {
	return t.Document(flag, path, pairs)
}

func collect[T any](sequence func(func(T, error) bool)) ([]T, error) {
	list := []T{}
	for item, err := range sequence {
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func limitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "how many at most, 1 to 10000")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *limit < 1 || *limit > 10000 {
			return fmt.Errorf("--limit %d: must be 1 to 10000", *limit)
		}
		return nil
	}
}

func (t *tool) completeApps(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return lookup.CompleteApps(t.Tool)(cmd, args, toComplete)
}
