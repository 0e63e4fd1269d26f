// Package login is the commands about how appctl reaches a platform: log in and out, named contexts, tokens for others,
// and who the caller is.
package login

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about logins and contexts.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{login(t), logout(t), whoami(t), token(t), contexts(t)}
}

// loginFlags are how a credential is got; at most one of them is given.
type loginFlags struct {
	code, tokenFile string
	tokenStdin      bool
	browser         bool
}

// login returns the command that gets a credential and keeps it.
func login(t *command.Tool) *cobra.Command {
	var f loginFlags
	cmd := command.Verb(t, "login", "Get a credential and keep it in the configuration", kept.view,
		func(ctx context.Context, _ []string) (kept, error) { return f.run(ctx, t) })
	cmd.Long = `Log in at the platform's identity provider in a browser of this machine (--browser), redeem a one-time login code or
link for a session, or keep a service-account key.

The credential is checked and kept in $XDG_CONFIG_HOME/appctl/config.json, readable by you alone, under the
context named by --context ("default" if none). A token is read from standard input or a file, never from the
command line, where others could see it. Scripts need no login: set APPCTL_SERVER and APPCTL_TOKEN.`
	cmd.Flags().StringVar(&f.code, "code", "", `one-time login code or link; "-" reads it from standard input`)
	cmd.Flags().BoolVar(&f.tokenStdin, "token-stdin", false, "read a token from standard input")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "read a token from this file")
	cmd.Flags().BoolVar(&f.browser, "browser", false, "log in at the identity provider, in a browser of this machine")
	cmd.MarkFlagsMutuallyExclusive("code", "token-stdin", "token-file", "browser")
	return cmd
}

// run gets a credential, checks it at its server, and only then keeps it.
func (f *loginFlags) run(ctx context.Context, t *command.Tool) (none kept, err error) {
	file, name, err := t.NewConfig()
	if err != nil {
		return none, err
	}
	known := file.Contexts[name]
	server := t.ServerOf(known)
	if server == "" {
		return none, command.Usagef("which server? give --server URL")
	}
	session, err := f.credential(ctx, t, server)
	if err != nil {
		return none, err
	}
	c, err := t.NewClient(server, session.Token)
	if err != nil {
		return none, err
	}
	answer, err := gql.GetViewer(ctx, c)
	if err != nil {
		return none, err
	}
	if known.Server != server { // another server has other projects
		known.Project = ""
	}
	known.Server, known.Token, known.TokenExpiresAt = server, session.Token, session.ExpiresAt
	known.Project = cmp.Or(t.Project, known.Project)
	file.Contexts[name], file.Current = known, name
	return kept{name, known, answer.Viewer.Actor}, file.Save(t.Env.ConfigPath)
}

// A kept credential is one in the configuration.
type kept struct {
	name    string
	context settings.Context
	actor   gql.Actor
}

// view shows where the caller is logged in, as whom and until when, and not the credential.
func (k kept) view() command.View {
	var expires any // null in JSON for a credential without an end
	ends := render.Time(&k.context.TokenExpiresAt)
	if ends != "" {
		expires = ends
	}
	return command.View{
		JSON: map[string]any{"context": k.name, "server": k.context.Server, "actor": k.actor, "expiresAt": expires},
		IDs:  []string{k.actor.Id},
		Page: func(p *render.Page) {
			p.Line(fmt.Sprintf("logged in to %s as %s (context %s)", k.context.Server, k.actor.Name, k.name))
			if ends != "" {
				p.Line("the session ends at " + ends)
			}
		},
	}
}

// credential returns the session of a login, or the token that was handed over.
func (f *loginFlags) credential(ctx context.Context, t *command.Tool, server string) (*client.Session, error) {
	switch {
	case f.browser:
		return browserLogin(ctx, t, server)
	case f.tokenStdin:
		token, err := t.ReadToken("-")
		return &client.Session{Token: token}, err
	case f.tokenFile != "":
		token, err := t.ReadToken(f.tokenFile)
		return &client.Session{Token: token}, err
	}
	code, err := loginCode(t.Env, f.code)
	if err != nil {
		return nil, err
	}
	c, err := t.NewClient(server, "")
	if err != nil {
		return nil, err
	}
	return c.Login(ctx, code)
}

// loginCode returns the code that was given, or the one that a person types or standard input holds.
func loginCode(env command.Environment, given string) (string, error) {
	if given == "" && !env.StdinTerminal {
		return "", command.Usagef("how to log in? give --browser, --code CODE, --token-stdin or --token-file FILE")
	}
	if given == "" {
		fmt.Fprint(env.Stderr, "login code: ")
		given = "-"
	}
	if given == "-" {
		line, err := bufio.NewReader(io.LimitReader(env.Stdin, command.MaxToken)).ReadString('\n')
		if err != nil && line == "" {
			return "", command.Usagef("no login code on standard input")
		}
		given = line
	}
	return codeOf(strings.TrimSpace(given)), nil
}

// codeOf returns the code of a login link, whose fragment carries it; a bare code is returned as it is.
func codeOf(given string) string {
	_, fragment, isLink := strings.Cut(given, "#")
	if !isLink {
		return given
	}
	if _, code, named := strings.Cut(fragment, "code="); named {
		code, _, _ = strings.Cut(code, "&")
		return code
	}
	return fragment
}

// logout returns the command that forgets a credential, and ends the session that it is of.
func logout(t *command.Tool) *cobra.Command {
	return t.Command("logout", "End the session and forget its credential",
		func(ctx context.Context, _ []string) error {
			file, name, err := t.Config()
			if err != nil {
				return err
			}
			answer, known := map[string]any{"context": name}, file.Contexts[name]
			if known.Token == "" {
				return t.Show(command.Line(answer, "not logged in"))
			}
			// Only sessions end with a logout; a service-account key is only forgotten here.
			if strings.HasPrefix(known.Token, "gpu_ses_") {
				if err := endSession(ctx, t, known); err != nil {
					return err
				}
			}
			known.Token, known.TokenExpiresAt = "", time.Time{}
			file.Contexts[name] = known
			if err := file.Save(t.Env.ConfigPath); err != nil {
				return err
			}
			return t.Show(command.Line(answer, "logged out of "+known.Server))
		})
}

// endSession ends the session at the server. A session that has ended already is not an error.
func endSession(ctx context.Context, t *command.Tool, known settings.Context) error {
	c, err := t.NewClient(known.Server, known.Token)
	if err != nil {
		return err
	}
	if err := c.Logout(ctx); err != nil && !command.Denied(err) {
		return err
	}
	return nil
}

// whoami returns the command that shows the caller with its roles.
func whoami(t *command.Tool) *cobra.Command {
	return t.Command("whoami", "Show the account that you are logged in as, and your roles",
		func(ctx context.Context, _ []string) error {
			c, err := t.Connect()
			if err != nil {
				return err
			}
			answer, err := gql.GetViewer(ctx, c)
			if err != nil {
				return err
			}
			viewer, tenant := answer.Viewer, ""
			if viewer.Tenant != nil {
				tenant = fmt.Sprintf("%s (%s)", viewer.Tenant.Slug, viewer.Tenant.Id)
			}
			return t.Show(command.Detail(viewer, viewer.Actor.Id, func(p *render.Page) {
				p.Fields("Server", c.Server(), "Name", viewer.Actor.Name, "Kind", viewer.Actor.Kind, "Id",
					viewer.Actor.Id, "Tenant", tenant)
				p.Section("Roles")
				roleTable.On(p, viewer.Bindings)
			}))
		})
}

var roleTable = command.Table[gql.RoleBinding]{
	Heading: []string{"ROLE", "SCOPE", "EXPIRES", "BREAK-GLASS"},
	Row: func(binding *gql.RoleBinding) []string {
		expires := cmp.Or(render.Time(binding.ExpiresAt), "never")
		return []string{binding.Role, parts.Scope(binding.ProjectId, binding.TenantId), expires,
			render.YesNo(binding.BreakGlass)}
	},
}

// token returns the command that exchanges a key for a token that ends by itself.
func token(t *command.Tool) *cobra.Command {
	var life time.Duration
	var permissions []string
	cmd := command.Verb(t, "token", "Exchange a service account's key for a short-lived token",
		func(made *client.Token) command.View {
			return command.Secret(made, made.AccessToken, "Token", made.AccessToken,
				"Works until", render.Time(&made.ExpiresAt), "Permission keys", made.Scope)
		},
		func(ctx context.Context, _ []string) (*client.Token, error) {
			if life < 5*time.Minute || life > time.Hour {
				return nil, command.Usagef("--life %s: must be 5m to 1h", life)
			}
			c, err := t.Connect()
			if err != nil {
				return nil, err
			}
			return c.Exchange(ctx, life, permissions...)
		})
	cmd.Long = `Exchange the service-account key that appctl runs with for a token of 5 minutes to an hour, for a step that should not
have the key itself. The token ends with its key: revoke the key, and the token ends too.`
	cmd.Flags().DurationVar(&life, "life", 15*time.Minute, "how long it works")
	cmd.Flags().StringSliceVar(&permissions, "permission", nil,
		"permission key that it may use, of those the account has; all if not given")
	return cmd
}
