package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type loginFlags struct {
	code, tokenFile string
	tokenStdin      bool
	browser         bool
}

func (t *tool) loginCommand() *cobra.Command {
	var flags loginFlags
	cmd := t.command("login", "Get a credential and keep it in the configuration", cobra.NoArgs,
		func(ctx context.Context, _ []string) error { return t.login(ctx, flags) })
	cmd.Long = `Log in at the platform's identity provider in a browser of this machine (--browser), redeem a one-time login code or
link for a session, or keep a service-account key.

The credential is checked and kept in $XDG_CONFIG_HOME/appctl/config.json, readable by you alone, under the
context named by --context ("default" if none). A token is read from standard input or a file, never from the
command line, where others could see it. Scripts need no login: set APPCTL_SERVER and APPCTL_TOKEN.`
	cmd.Flags().StringVar(&flags.code, "code", "", `one-time login code or link; "-" reads it from standard input`)
	cmd.Flags().BoolVar(&flags.tokenStdin, "token-stdin", false, "read a token from standard input")
	cmd.Flags().StringVar(&flags.tokenFile, "token-file", "", "read a token from this file")
	cmd.Flags().BoolVar(&flags.browser, "browser", false, "log in at the identity provider, in a browser of this machine")
	cmd.MarkFlagsMutuallyExclusive("code", "token-stdin", "token-file", "browser")
	return cmd
}

func (t *tool) login(ctx context.Context, flags loginFlags) error {
	file, err := settings.Load(t.Env.ConfigPath)
	if err != nil {
		return usageError(err)
	}
	name := firstOf(t.Context, t.Env.Getenv("APPCTL_CONTEXT"), file.Current, "default")
	kept := file.Contexts[name]
	server := firstOf(t.Server, t.Env.Getenv("APPCTL_SERVER"), kept.Server)
	if server == "" {
		return usagef("which server? give --server URL")
	}
	session, err := t.credential(ctx, server, flags)
	if err != nil {
		return err
	}
	c, err := t.NewClient(server, session.Token)
	if err != nil {
		return err
	}
	answer, err := gql.GetViewer(ctx, c)
	if err != nil {
		return err
	}
	if kept.Server != server {
		kept.Project = ""
	}
	kept.Server, kept.Token, kept.TokenExpiresAt = server, session.Token, session.ExpiresAt
	kept.Project = firstOf(t.Project, kept.Project)
	file.Contexts[name], file.Current = kept, name
	if err := file.Save(t.Env.ConfigPath); err != nil {
		return err
	}
	return t.showLogin(name, kept, answer.Viewer.Actor)
}

func (t *tool) showLogin(name string, kept settings.Context, actor gql.Actor) error {
	expires := render.Time(&kept.TokenExpiresAt)
	return t.show(view{
		JSON: map[string]any{"context": name, "server": kept.Server, "actor": actor, "expiresAt": nullable(expires)},
		IDs:  []string{actor.Id},
		Page: func(p *render.Page) {
			p.Line(fmt.Sprintf("logged in to %s as %s (context %s)", kept.Server, actor.Name, name))
			if expires != "" {
				p.Line("the session ends at " + expires)
			}
		},
	})
}

// credential is the session of a login code, or the token that was handed over.
func (t *tool) credential(ctx context.Context, server string, flags loginFlags) (*client.Session, error) {
	switch {
	case flags.browser:
		return t.browserLogin(ctx, server)
	case flags.tokenStdin:
		token, err := t.ReadToken("-")
		return &client.Session{Token: token}, err
	case flags.tokenFile != "":
		token, err := t.ReadToken(flags.tokenFile)
		return &client.Session{Token: token}, err
	}
	code, err := t.loginCode(flags.code)
	if err != nil {
		return nil, err
	}
	c, err := t.NewClient(server, "")
	if err != nil {
		return nil, err
	}
	return c.Login(ctx, code)
}

// loginCode is the code given, read or asked for.
func (t *tool) loginCode(given string) (string, error) {
	if given == "" && !t.Env.StdinTerminal {
		return "", usagef("how to log in? give --browser, --code CODE, --token-stdin or --token-file FILE")
	}
	if given == "" {
		fmt.Fprint(t.Env.Stderr, "login code: ")
		given = "-"
	}
	if given == "-" {
		line, err := bufio.NewReader(io.LimitReader(t.Env.Stdin, command.MaxToken)).ReadString('\n')
		if err != nil && line == "" {
			return "", usagef("no login code on standard input")
		}
		given = line
	}
	return codeOf(strings.TrimSpace(given)), nil
}

// codeOf takes the code out of a login link, whose fragment carries it; a bare code is returned as it is.
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

func (t *tool) logoutCommand() *cobra.Command {
	return t.command("logout", "End the session and forget its credential", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		file, name, err := t.Config()
		if err != nil {
			return err
		}
		kept := file.Contexts[name]
		if kept.Token == "" {
			return t.show(view{JSON: map[string]any{"context": name}, Page: func(p *render.Page) { p.Line("not logged in") }})
		}
		// Only sessions end with a logout; a service-account key is only forgotten here.
		if strings.HasPrefix(kept.Token, "gpu_ses_") {
			if err := t.endSession(ctx, kept); err != nil {
				return err
			}
		}
		kept.Token, kept.TokenExpiresAt = "", settings.Context{}.TokenExpiresAt
		file.Contexts[name] = kept
		if err := file.Save(t.Env.ConfigPath); err != nil {
			return err
		}
		return t.show(view{JSON: map[string]any{"context": name}, Page: func(p *render.Page) { p.Line("logged out of " + kept.Server) }})
	})
}

// endSession ends the session at the server; one that has ended already is no error.
func (t *tool) endSession(ctx context.Context, kept settings.Context) error {
	c, err := t.NewClient(kept.Server, kept.Token)
	if err != nil {
		return err
	}
	if err := c.Logout(ctx); err != nil && !command.Denied(err) {
		return err
	}
	return nil
}

func (t *tool) whoamiCommand() *cobra.Command {
	return t.command("whoami", "Show who the platform takes you for, and your roles", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.GetViewer(ctx, c)
		if err != nil {
			return err
		}
		viewer := answer.Viewer
		return t.show(view{JSON: viewer, IDs: []string{viewer.Actor.Id}, Page: func(p *render.Page) {
			tenant := ""
			if viewer.Tenant != nil {
				tenant = fmt.Sprintf("%s (%s)", viewer.Tenant.Slug, viewer.Tenant.Id)
			}
			p.Fields("Server", c.Server(), "Name", viewer.Actor.Name, "Kind", viewer.Actor.Kind, "Id", viewer.Actor.Id, "Tenant", tenant)
			p.Section("Roles")
			p.Table([]string{"ROLE", "SCOPE", "EXPIRES"}, bindingRows(viewer.Bindings))
		}})
	})
}

func bindingRows(bindings []gql.RoleBinding) [][]string {
	var rows [][]string
	for _, binding := range bindings {
		scope := firstOf(render.Text(binding.ProjectId), render.Text(binding.TenantId), "platform")
		rows = append(rows, []string{binding.Role, scope, firstOf(render.Time(binding.ExpiresAt), "never")})
	}
	return rows
}

// nullable is a text for JSON, null when empty.
func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}
