package artifacts

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxSources bounds the sources that are read to find one by its name.
const maxSources = 2_000

func listSources(t *command.Tool) *cobra.Command {
	var tenant string
	cmd := command.List(t, "list", "List the sources that you may use: the platform's and your tenants'", sourceTable,
		func(ctx context.Context, _ []string, limit int) ([]gql.ArtifactSource, error) {
			return sources(ctx, t, tenant, limit)
		})
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this tenant, by id, and of the platform")
	return cmd
}

var sourceTable = command.Table[gql.ArtifactSource]{
	Heading: []string{"ID", "NAME", "OWNER", "KIND", "LOCATION", "SIGNATURES", "KEYS", "USER", "ON"},
	Row: func(one *gql.ArtifactSource) []string {
		return []string{
			one.Id, one.Name, owner(one), string(one.Kind), one.Location, string(one.SignaturePolicy),
			strconv.Itoa(len(one.Keys)), one.CredentialUser, on(one),
		}
	},
}

// sources reads at most limit sources.
func sources(ctx context.Context, t *command.Tool, tenant string, limit int) ([]gql.ArtifactSource, error) {
	return command.All[gql.ArtifactSource](limit, func(first int, after string) (*gql.ArtifactSourcePage, error) {
		answer, err := gql.ListArtifactSources(ctx, t, tenant, first, after)
		return &answer.ArtifactSources, err
	})
}

// owner returns the tenant of a source, or the platform.
func owner(source *gql.ArtifactSource) string {
	if source.TenantId == nil {
		return "platform"
	}
	return *source.TenantId
}

// on returns whether a source is switched on, or since when it is not.
func on(source *gql.ArtifactSource) string {
	if source.DisabledAt == nil {
		return "yes"
	}
	return "off since " + render.Time(source.DisabledAt)
}

// sourceNamed returns a source by its id, or by its name when only one that the caller sees has it.
func sourceNamed(ctx context.Context, t *command.Tool, given string) (*gql.ArtifactSource, error) {
	found, err := sources(ctx, t, "", maxSources)
	if err != nil {
		return nil, err
	}
	var named []*gql.ArtifactSource
	for i := range found {
		if found[i].Id == given {
			return &found[i], nil
		}
		if found[i].Name == given {
			named = append(named, &found[i])
		}
	}
	switch len(named) {
	case 0:
		return nil, command.Usagef("no source %q: see appctl source list", given)
	case 1:
		return named[0], nil
	}
	return nil, command.Usagef("more than one source is named %q: give its id", given)
}

func showSource(t *command.Tool) *cobra.Command {
	return command.Verb(t, "show SOURCE", "Show a source with its keys", viewSource,
		func(ctx context.Context, args []string) (*gql.ArtifactSource, error) {
			return sourceNamed(ctx, t, args[0])
		})
}

func viewSource(one *gql.ArtifactSource) command.View {
	return command.Detail(one, one.Id, func(p *render.Page) {
		p.Fields("Id", one.Id, "Name", one.Name, "Owner", owner(one), "Kind", string(one.Kind), "Location",
			one.Location, "Region", one.Region, "Signatures", string(one.SignaturePolicy), "User", one.CredentialUser,
			"Credential set", render.Time(one.CredentialAt), "On", on(one))
		keyTable.On(p, one.Keys)
	})
}

var keyTable = command.Table[gql.SignerKey]{
	Heading: []string{"KEY", "NAME", "ALGORITHM", "FINGERPRINT", "FROM", "UNTIL", "REVOKED"},
	Row: func(key *gql.SignerKey) []string {
		return []string{
			key.Id, key.Name, key.Algorithm, key.Fingerprint, render.Time(&key.ValidFrom), render.Time(key.ValidUntil),
			render.Time(key.RevokedAt),
		}
	},
}

// addSource returns the command that adds a source of the caller's tenant, unless another owner is given.
func addSource(t *command.Tool) *cobra.Command {
	var input gql.CreateArtifactSourceInput
	var kind, signatures string
	var platform bool
	cmd := command.Verb(t, "add NAME LOCATION", "Add a source of your tenant's, or with --platform the platform's",
		viewSource,
		func(ctx context.Context, args []string) (_ *gql.ArtifactSource, err error) {
			input.Name, input.Location = args[0], args[1]
			if input.Kind, err = command.Enum("kind", kind, gql.AllSourceKind); err != nil {
				return nil, err
			}
			if input.SignaturePolicy, err = command.Enum("signatures", signatures, gql.AllSignaturePolicy); err != nil {
				return nil, err
			}
			if !platform {
				if input.TenantId, err = lookup.Tenant(ctx, t, input.TenantId); err != nil {
					return nil, err
				}
			}
			answer, err := gql.CreateArtifactSource(ctx, t, input)
			return &answer.CreateArtifactSource, err
		})
	cmd.Example = `  appctl source add team registry.example.com/team
  appctl source add weights https://s3.example.com/weights/ --kind s3 --region eu-central-1 --signatures quarantine`
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "oci", "oci, https or s3")
	flags.StringVar(&signatures, "signatures", "required",
		"what happens to an artifact that no trusted key has signed: required refuses it, "+
			"quarantine delivers it to no one, optional accepts it")
	flags.StringVar(&input.Region, "region", "", "an object store's region")
	flags.StringVar(&input.TenantId, "tenant", "", "tenant's id; your own if not given")
	flags.BoolVar(&platform, "platform", false, "a source for all tenants; for the platform's staff")
	cmd.MarkFlagsMutuallyExclusive("platform", "tenant")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// updateSource returns the command that changes what is given and leaves the rest of a source as it is.
func updateSource(t *command.Tool) *cobra.Command {
	var input gql.UpdateArtifactSourceInput
	var name, signatures string
	var off, back bool
	cmd := command.Verb(t, "update SOURCE", "Rename a source, change its signature policy, or switch it off or on",
		viewSource,
		func(ctx context.Context, args []string) (*gql.ArtifactSource, error) {
			if signatures != "" {
				policy, err := command.Enum("signatures", signatures, gql.AllSignaturePolicy)
				if err != nil {
					return nil, err
				}
				input.SignaturePolicy = &policy
			}
			input.Name = command.Given(name)
			if off || back {
				input.Disabled = &off
			}
			of, err := sourceNamed(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			input.SourceId = of.Id
			answer, err := gql.UpdateArtifactSource(ctx, t, input)
			return &answer.UpdateArtifactSource, err
		})
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "its new name")
	flags.StringVar(&signatures, "signatures", "", "required, quarantine or optional")
	flags.BoolVar(&off, "off", false, "switch it off: nothing is published or delivered from it")
	flags.BoolVar(&back, "on", false, "switch it on")
	command.ReasonFlag(cmd, &input.Reason)
	cmd.MarkFlagsMutuallyExclusive("off", "on")
	cmd.MarkFlagsOneRequired("name", "signatures", "off", "on")
	return cmd
}

// setCredential returns the command that stores a source's secret. It is read from a file or standard input, never from
// the command line, where others could see it.
func setCredential(t *command.Tool) *cobra.Command {
	var input gql.SetSourceCredentialInput
	var file string
	var none bool
	cmd := command.Verb(t, "credential SOURCE",
		"Set or remove a source's credential; the secret is read from a file or the standard input", viewSource,
		func(ctx context.Context, args []string) (*gql.ArtifactSource, error) {
			if !none {
				text, err := values.ReadFile(file, t.Env.Stdin)
				if err != nil {
					return nil, command.Usagef("secret: %w", err)
				}
				if input.Secret = strings.TrimRight(string(text), "\r\n"); input.Secret == "" {
					return nil, command.Usagef("secret: %s is empty", file)
				}
			}
			of, err := sourceNamed(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			input.SourceId = of.Id
			answer, err := gql.SetSourceCredential(ctx, t, input)
			return &answer.SetSourceCredential, err
		})
	cmd.Example = `  appctl source credential team --user robot --secret-file - < password
  appctl source credential team --none --reason "the registry is public now"`
	cmd.Flags().StringVar(&input.User, "user", "", "user name or access key id")
	cmd.Flags().StringVar(&file, "secret-file", "",
		`file with the password, token or secret key; "-" reads the standard input`)
	cmd.Flags().BoolVar(&none, "none", false, "remove the credential")
	command.ReasonFlag(cmd, &input.Reason)
	cmd.MarkFlagsRequiredTogether("user", "secret-file")
	cmd.MarkFlagsMutuallyExclusive("user", "none")
	cmd.MarkFlagsOneRequired("user", "none")
	return cmd
}

// addKey returns the command that trusts a public key at a source, from and until the times given.
func addKey(t *command.Tool) *cobra.Command {
	var input gql.AddSignerKeyInput
	var from, until string
	cmd := command.Verb(t, "add SOURCE FILE",
		`Trust the public key in a PEM file ("-" for the standard input) at a source`, viewKey,
		func(ctx context.Context, args []string) (*gql.SignerKey, error) {
			text, err := values.ReadFile(args[1], t.Env.Stdin)
			if err != nil {
				return nil, command.Usagef("public key: %w", err)
			}
			if input.ValidFrom, err = command.Instant("from", from); err != nil {
				return nil, err
			}
			if input.ValidUntil, err = command.Instant("until", until); err != nil {
				return nil, err
			}
			of, err := sourceNamed(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			input.SourceId, input.PublicKey = of.Id, string(text)
			answer, err := gql.AddSignerKey(ctx, t, input)
			return &answer.AddSignerKey, err
		})
	cmd.Example = "  appctl source key add team release.pub --name release-2026 --until 8760h"
	cmd.Flags().StringVar(&input.Name, "name", "", "display name")
	cmd.Flags().StringVar(&from, "from", "",
		"when its signatures begin to count: a time, or a duration from now; at once if not given")
	cmd.Flags().StringVar(&until, "until", "", "when they stop counting: a time or a duration from now (default never)")
	command.Need(cmd, "name")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func revokeKey(t *command.Tool) *cobra.Command {
	var reason string
	cmd := command.Verb(t, "revoke KEY", "Stop trusting a key, for good", viewKey,
		func(ctx context.Context, args []string) (*gql.SignerKey, error) {
			answer, err := gql.RevokeSignerKey(ctx, t, args[0], reason)
			return &answer.RevokeSignerKey, err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept with the key")
	command.Need(cmd, "reason")
	return cmd
}

func viewKey(key *gql.SignerKey) command.View {
	return command.One(key, key.Id, "Name", key.Name, "Source", key.SourceId, "Algorithm", key.Algorithm,
		"Fingerprint", key.Fingerprint, "From", render.Time(&key.ValidFrom), "Until", render.Time(key.ValidUntil),
		"Revoked", render.Time(key.RevokedAt), "Reason", key.RevokeReason)
}
