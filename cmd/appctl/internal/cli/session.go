package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	userAgent   = "appctl/1"
	maxProjects = 1000
	maxToken    = 16 << 10
)

// config reads the configuration and the name of the context in use, which may not exist yet.
func (t *tool) config() (*settings.File, string, error) {
	file, err := settings.Load(t.env.ConfigPath)
	if err != nil {
		return nil, "", usageError{err}
	}
	name := firstOf(t.context, t.env.Getenv("APPCTL_CONTEXT"), file.Current, "default")
	if _, exists := file.Contexts[name]; !exists && (t.context != "" || t.env.Getenv("APPCTL_CONTEXT") != "") {
		return file, name, usagef("there is no context %q: see appctl context list", name)
	}
	return file, name, nil
}

// target is the server and credential of this run: flags, then environment, then configuration.
func (t *tool) target() (server, token string, err error) {
	file, name, err := t.config()
	if err != nil {
		return "", "", err
	}
	known := file.Contexts[name]
	server = firstOf(t.server, t.env.Getenv("APPCTL_SERVER"), known.Server)
	if server == "" {
		return "", "", usagef("no server is known: run appctl login --server URL, or set APPCTL_SERVER")
	}
	if token, err = t.envToken(); err != nil || token != "" {
		return server, token, err
	}
	// A credential goes only to the server that it was given by.
	if strings.TrimRight(server, "/") == strings.TrimRight(known.Server, "/") {
		token = known.Token
	}
	return server, token, nil
}

// envToken is the credential of the environment: APPCTL_TOKEN, or the file that APPCTL_TOKEN_FILE names.
func (t *tool) envToken() (string, error) {
	if token := t.env.Getenv("APPCTL_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	path := t.env.Getenv("APPCTL_TOKEN_FILE")
	if path == "" {
		return "", nil
	}
	return t.readToken(path)
}

func (t *tool) readToken(path string) (string, error) {
	text, err := values.ReadFile(path, t.env.Stdin)
	if err != nil {
		return "", usagef("token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > maxToken {
		return "", usagef("token: %s holds none", path)
	}
	return token, nil
}

// connect is the client of this run.
func (t *tool) connect() (*client.Client, error) {
	if t.client != nil {
		return t.client, nil
	}
	server, token, err := t.target()
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, &client.Error{Code: client.CodeUnauthenticated, Message: "not logged in to " + server + ": run appctl login, or set APPCTL_TOKEN"}
	}
	t.client, err = t.newClient(server, token)
	return t.client, err
}

func (t *tool) newClient(server, token string) (*client.Client, error) {
	c, err := client.New(server, client.Options{Token: token, UserAgent: userAgent, OnRetry: func(r client.Retry) {
		t.remark("%s: trying again in %s", describe(r.Err).Message, r.Delay.Round(100*time.Millisecond))
	}})
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// scope is the client and the project of this run.
func (t *tool) scope(ctx context.Context) (*client.Client, string, error) {
	c, err := t.connect()
	if err != nil {
		return nil, "", err
	}
	project, err := t.projectID(ctx, c)
	return c, project, err
}

// projectID is the id of the project that was named by flag, environment or context, or of the only one there is.
func (t *tool) projectID(ctx context.Context, c *client.Client) (string, error) {
	file, name, err := t.config()
	if err != nil {
		return "", err
	}
	named := firstOf(t.project, t.env.Getenv("APPCTL_PROJECT"), file.Contexts[name].Project)
	if strings.HasPrefix(named, "prj_") {
		return named, nil
	}
	projects, err := listProjects(ctx, c)
	if err != nil {
		return "", err
	}
	return pickProject(projects, named)
}

func pickProject(projects []gql.Project, named string) (string, error) {
	var found, slugs []string
	for _, project := range projects {
		slugs = append(slugs, project.Slug)
		if named == "" || project.Slug == named {
			found = append(found, project.Id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && named != "":
		return "", usagef("--project %s: several projects have this slug, give the id: %s", named, strings.Join(found, ", "))
	case len(found) > 1:
		return "", usagef("which project? give --project or APPCTL_PROJECT, one of: %s", strings.Join(slugs, ", "))
	case named != "":
		return "", notFoundf("there is no project %q", named)
	default:
		return "", notFoundf("there is no project that you can see")
	}
}

func listProjects(ctx context.Context, c *client.Client) ([]gql.Project, error) {
	return collect[gql.Project](client.All[gql.Project](maxProjects, func(first int, after string) (*gql.ProjectPage, error) {
		answer, err := gql.ListProjects(ctx, c, first, after)
		if err != nil {
			return nil, err
		}
		return &answer.Viewer.Projects, nil
	}))
}

// collect reads a bounded sequence into a list; the list is never nil, so that it is [] as JSON.
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

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// key is the idempotency key that was given, or a fresh one.
func key(given string) string { return firstOf(given, client.NewKey()) }

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
