package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) sourceCommand() *cobra.Command {
	return group("source", "Where artifacts may come from, by what credential, and whose signatures count there",
		t.sourceList(), t.sourceShow(), t.sourceAdd(), t.sourceUpdate(), t.sourceCredential(), t.sourceKeyCommand())
}

func (t *tool) sourceList() *cobra.Command {
	var limit int
	var tenant string
	list := t.command("list", "List the sources that you may use: the platform's and your tenants'", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		found, err := sources(ctx, c, tenant, limit)
		if err != nil {
			return err
		}
		var rows [][]string
		var ids []string
		for i := range found {
			one := &found[i]
			rows = append(rows, []string{one.Id, one.Name, ownerText(one), string(one.Kind), one.Location, string(one.SignaturePolicy),
				fmt.Sprint(len(one.Keys)), one.CredentialUser, onText(one)})
			ids = append(ids, one.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "NAME", "OWNER", "KIND", "LOCATION", "SIGNATURES", "KEYS", "USER", "ON"}, rows)
		}})
	})
	list.Flags().StringVar(&tenant, "tenant", "", "only this tenant's, by id, and the platform's")
	limitFlag(list, &limit)
	return list
}

// maxSources bounds those that are looked through for a name.
const maxSources = 2_000

// sources reads at most limit sources.
func sources(ctx context.Context, c *client.Client, tenant string, limit int) ([]gql.ArtifactSource, error) {
	return collect[gql.ArtifactSource](client.All[gql.ArtifactSource](limit, func(first int, after string) (*gql.ArtifactSourcePage, error) {
		answer, err := gql.ListArtifactSources(ctx, c, tenant, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.ArtifactSources, nil
	}))
}

// ownerText is whose a source is.
func ownerText(source *gql.ArtifactSource) string {
	if source.TenantId == nil {
		return "platform"
	}
	return *source.TenantId
}

// onText says whether a source is switched on, or since when it is not.
func onText(source *gql.ArtifactSource) string {
	if source.DisabledAt == nil {
		return "yes"
	}
	return "off since " + render.Time(source.DisabledAt)
}

// sourceNamed connects, and finds a source by its id, or by its name when just one that the caller sees has it.
func (t *tool) sourceNamed(ctx context.Context, given string) (*client.Client, *gql.ArtifactSource, error) {
	c, err := t.connect()
	if err != nil {
		return nil, nil, err
	}
	found, err := sources(ctx, c, "", maxSources)
	if err != nil {
		return nil, nil, err
	}
	var named []*gql.ArtifactSource
	for i := range found {
		if found[i].Id == given {
			return c, &found[i], nil
		}
		if found[i].Name == given {
			named = append(named, &found[i])
		}
	}
	switch len(named) {
	case 0:
		return nil, nil, usagef("no source %q: see appctl source list", given)
	case 1:
		return c, named[0], nil
	}
	return nil, nil, usagef("more than one source is named %q: give its id", given)
}

func (t *tool) sourceShow() *cobra.Command {
	return t.command("show SOURCE", "Show a source with its keys", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		_, found, err := t.sourceNamed(ctx, args[0])
		if err != nil {
			return err
		}
		return t.showSource(found)
	})
}

func (t *tool) showSource(one *gql.ArtifactSource) error {
	var keys [][]string
	for i := range one.Keys {
		key := &one.Keys[i]
		keys = append(keys, []string{key.Id, key.Name, key.Algorithm, key.Fingerprint, render.Time(&key.ValidFrom), render.Time(key.ValidUntil), render.Time(key.RevokedAt)})
	}
	return t.show(view{JSON: one, IDs: []string{one.Id}, Page: func(p *render.Page) {
		p.Fields("Id", one.Id, "Name", one.Name, "Owner", ownerText(one), "Kind", string(one.Kind), "Location", one.Location, "Region", one.Region,
			"Signatures", string(one.SignaturePolicy), "User", one.CredentialUser, "Credential set", render.Time(one.CredentialAt), "On", onText(one))
		p.Table([]string{"KEY", "NAME", "ALGORITHM", "FINGERPRINT", "FROM", "UNTIL", "REVOKED"}, keys)
	}})
}

func (t *tool) sourceAdd() *cobra.Command {
	var input gql.CreateArtifactSourceInput
	var kind, signatures string
	var platform bool
	add := t.command("add NAME LOCATION", "Add a source of your tenant's, or with --platform the platform's", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			kinds, err := enums("kind", []string{kind}, gql.AllSourceKind)
			if err != nil {
				return err
			}
			policies, err := enums("signatures", []string{signatures}, gql.AllSignaturePolicy)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			if !platform {
				if input.TenantId, err = tenantID(ctx, c, input.TenantId); err != nil {
					return err
				}
			}
			input.Name, input.Location, input.Kind, input.SignaturePolicy = args[0], args[1], kinds[0], policies[0]
			input.IdempotencyKey = key(input.IdempotencyKey)
			answer, err := gql.CreateArtifactSource(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showSource(&answer.CreateArtifactSource)
		})
	add.Example = `  appctl source add team registry.example.com/team
  appctl source add weights https://s3.example.com/weights/ --kind s3 --region eu-central-1 --signatures quarantine`
	set := add.Flags()
	set.StringVar(&kind, "kind", "oci", "oci, https or s3")
	set.StringVar(&signatures, "signatures", "required", "what becomes of what no trusted key has signed: required refuses it, quarantine keeps it from everybody, optional takes it")
	set.StringVar(&input.Region, "region", "", "an object store's region")
	set.StringVar(&input.TenantId, "tenant", "", "tenant's id; your own if not given")
	set.BoolVar(&platform, "platform", false, "a source for all, as the platform's staff may add")
	add.MarkFlagsMutuallyExclusive("platform", "tenant")
	keyFlag(add, &input.IdempotencyKey)
	return add
}

func (t *tool) sourceUpdate() *cobra.Command {
	var input gql.UpdateArtifactSourceInput
	var name, signatures string
	var off, on bool
	update := t.command("update SOURCE", "Rename a source, change its signature policy, or switch it off or on", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			if signatures != "" {
				policies, err := enums("signatures", []string{signatures}, gql.AllSignaturePolicy)
				if err != nil {
					return err
				}
				input.SignaturePolicy = &policies[0]
			}
			if name != "" {
				input.Name = &name
			}
			if off || on {
				input.Disabled = &off
			}
			c, of, err := t.sourceNamed(ctx, args[0])
			if err != nil {
				return err
			}
			input.SourceId = of.Id
			answer, err := gql.UpdateArtifactSource(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showSource(&answer.UpdateArtifactSource)
		})
	set := update.Flags()
	set.StringVar(&name, "name", "", "its new name")
	set.StringVar(&signatures, "signatures", "", "required, quarantine or optional")
	set.BoolVar(&off, "off", false, "switch it off: nothing is published or delivered from it")
	set.BoolVar(&on, "on", false, "switch it on")
	reasonFlag(update, &input.Reason)
	update.MarkFlagsMutuallyExclusive("off", "on")
	update.MarkFlagsOneRequired("name", "signatures", "off", "on")
	return update
}

func (t *tool) sourceCredential() *cobra.Command {
	var input gql.SetSourceCredentialInput
	var file string
	var none bool
	set := t.command("credential SOURCE", "Set a source's credential, or take it away; the secret is read from a file or the standard input", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			if !none {
				text, err := values.ReadFile(file, t.Env.Stdin)
				if err != nil {
					return usagef("secret: %w", err)
				}
				input.Secret = strings.TrimRight(string(text), "\r\n")
				if input.Secret == "" {
					return usagef("secret: %s holds none", file)
				}
			}
			c, of, err := t.sourceNamed(ctx, args[0])
			if err != nil {
				return err
			}
			input.SourceId = of.Id
			answer, err := gql.SetSourceCredential(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showSource(&answer.SetSourceCredential)
		})
	set.Example = `  appctl source credential team --user robot --secret-file - < password
  appctl source credential team --none --reason "the registry is open by now"`
	set.Flags().StringVar(&input.User, "user", "", "user name or access key id")
	set.Flags().StringVar(&file, "secret-file", "", `file with the password, token or secret key; "-" reads the standard input`)
	set.Flags().BoolVar(&none, "none", false, "take the credential away")
	reasonFlag(set, &input.Reason)
	set.MarkFlagsRequiredTogether("user", "secret-file")
	set.MarkFlagsMutuallyExclusive("user", "none")
	set.MarkFlagsOneRequired("user", "none")
	return set
}
