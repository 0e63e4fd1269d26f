package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) sourceKeyCommand() *cobra.Command {
	return group("key", "The keys whose signatures count at a source", t.sourceKeyAdd(), t.sourceKeyRevoke())
}

func (t *tool) sourceKeyAdd() *cobra.Command {
	var input gql.AddSignerKeyInput
	var from, until string
	add := t.command("add SOURCE FILE", `Trust the public key in a PEM file ("-" for the standard input) at a source`, cobra.ExactArgs(2),
		func(ctx context.Context, args []string) (err error) {
			text, err := values.ReadFile(args[1], t.Env.Stdin)
			if err != nil {
				return usagef("public key: %w", err)
			}
			if input.ValidFrom, err = instant("from", from); err != nil {
				return err
			}
			if input.ValidUntil, err = instant("until", until); err != nil {
				return err
			}
			c, of, err := t.sourceNamed(ctx, args[0])
			if err != nil {
				return err
			}
			input.SourceId, input.PublicKey = of.Id, string(text)
			answer, err := gql.AddSignerKey(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showSignerKey(&answer.AddSignerKey)
		})
	add.Example = "  appctl source key add team release.pub --name release-2026 --until 8760h"
	add.Flags().StringVar(&input.Name, "name", "", "name for people")
	add.Flags().StringVar(&from, "from", "", "from when signatures by it count: a time, or a duration from now; at once if not given")
	add.Flags().StringVar(&until, "until", "", "until when they count: a time, or a duration from now")
	_ = add.MarkFlagRequired("name")
	reasonFlag(add, &input.Reason)
	return add
}

func (t *tool) sourceKeyRevoke() *cobra.Command {
	var reason string
	revoke := t.command("revoke KEY", "Trust a key no longer, for good", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.RevokeSignerKey(ctx, c, args[0], reason)
		if err != nil {
			return err
		}
		return t.showSignerKey(&answer.RevokeSignerKey)
	})
	revoke.Flags().StringVar(&reason, "reason", "", "why, kept with the key")
	_ = revoke.MarkFlagRequired("reason")
	return revoke
}

func (t *tool) showSignerKey(key *gql.SignerKey) error {
	return t.showOne(key, key.Id, "Name", key.Name, "Source", key.SourceId, "Algorithm", key.Algorithm, "Fingerprint", key.Fingerprint,
		"From", render.Time(&key.ValidFrom), "Until", render.Time(key.ValidUntil), "Revoked", render.Time(key.RevokedAt), "Reason", key.RevokeReason)
}
