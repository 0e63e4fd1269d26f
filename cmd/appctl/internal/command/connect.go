package command

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// MaxToken bounds a credential and a login code, in bytes.
const MaxToken = 16 << 10

const (
	userAgent   = "appctl/1"
	maxProjects = 1000
)

// Config reads the configuration and the name of the context in use, which need not exist unless it was given.
func (t *Tool) Config() (*settings.File, string, error) {
	file, name, err := t.NewConfig()
	if err != nil {
		return nil, "", err
	}
	given := t.Context != "" || t.Env.Getenv("APPCTL_CONTEXT") != ""
	if _, exists := file.Contexts[name]; given && !exists {
		return file, name, Usagef("there is no context %q: see appctl context list", name)
	}
	return file, name, nil
}

// NewConfig reads the configuration and the name of the context in use, which a login may be about to create.
func (t *Tool) NewConfig() (*settings.File, string, error) {
	file, err := settings.Load(t.Env.ConfigPath)
	if err != nil {
		return nil, "", usageError{err}
	}
	return file, cmp.Or(t.Context, t.Env.Getenv("APPCTL_CONTEXT"), file.Current, "default"), nil
}

// ServerOf returns the server of this run: the flag, then the environment, then the context; empty for none.
func (t *Tool) ServerOf(known settings.Context) string {
	return cmp.Or(t.Server, t.Env.Getenv("APPCTL_SERVER"), known.Server)
}

// Target returns the server and credential of this run: flags, then environment, then configuration. The credential is
// empty when neither environment nor configuration has one.
func (t *Tool) Target() (server, token string, err error) {
	file, name, err := t.Config()
	if err != nil {
		return "", "", err
	}
	known := file.Contexts[name]
	if server = t.ServerOf(known); server == "" {
		return "", "", Usagef("no server is configured: run appctl login --server URL, or set APPCTL_SERVER")
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

// envToken returns the credential of the environment: APPCTL_TOKEN, or the file that APPCTL_TOKEN_FILE names.
func (t *Tool) envToken() (string, error) {
	if token := t.Env.Getenv("APPCTL_TOKEN"); token != "" {
		return strings.TrimSpace(token), nil
	}
	path := t.Env.Getenv("APPCTL_TOKEN_FILE")
	if path == "" {
		return "", nil
	}
	return t.ReadToken(path)
}

// ReadToken reads a credential from a file, or from standard input for "-".
func (t *Tool) ReadToken(path string) (string, error) {
	text, err := values.ReadFile(path, t.Env.Stdin)
	if err != nil {
		return "", Usagef("token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > MaxToken {
		return "", Usagef("token: %s does not contain a token", path)
	}
	return token, nil
}

// Connect returns the client of this run. It sends nothing yet.
func (t *Tool) Connect() (*client.Client, error) {
	if t.client != nil {
		return t.client, nil
	}
	server, token, err := t.Target()
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, &client.Error{
			Code:    client.CodeUnauthenticated,
			Message: "not logged in to " + server + ": run appctl login, or set APPCTL_TOKEN",
		}
	}
	t.client, err = t.NewClient(server, token)
	return t.client, err
}

// NewClient returns a client that reports its retries as remarks.
func (t *Tool) NewClient(server, token string) (*client.Client, error) {
	c, err := client.New(server, client.Options{Token: token, UserAgent: userAgent, OnRetry: func(r client.Retry) {
		t.Remark("%s: trying again in %s", describe(r.Err).Message, r.Delay.Round(100*time.Millisecond))
	}})
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// MakeRequest sends a request with the client of this run, which the first one connects.
func (t *Tool) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	c, err := t.Connect()
	if err != nil {
		return err
	}
	return c.MakeRequest(ctx, request, response)
}

// ProjectID returns the id of the project that was named by flag, environment or context, or of the only one that
// there is. It connects first: a run without a credential fails for that, whatever else is wrong.
func (t *Tool) ProjectID(ctx context.Context) (string, error) {
	if _, err := t.Connect(); err != nil {
		return "", err
	}
	file, name, err := t.Config()
	if err != nil {
		return "", err
	}
	named := cmp.Or(t.Project, t.Env.Getenv("APPCTL_PROJECT"), file.Contexts[name].Project)
	if strings.HasPrefix(named, "prj_") {
		return named, nil
	}
	projects, err := t.Projects(ctx)
	if err != nil {
		return "", err
	}
	return pickProject(projects, named)
}

// pickProject returns the id of the project with a slug, or of the only project when none is named.
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
		return "", Usagef("--project %s: several projects have this slug, give the id: %s", named,
			strings.Join(found, ", "))
	case len(found) > 1:
		return "", Usagef("which project? give --project or APPCTL_PROJECT, one of: %s", strings.Join(slugs, ", "))
	case named != "":
		return "", NotFoundf("there is no project %q", named)
	default:
		return "", NotFoundf("there is no project that you can see")
	}
}

// Projects reads the projects that the caller can see.
func (t *Tool) Projects(ctx context.Context) ([]gql.Project, error) {
	return All[gql.Project](maxProjects, func(first int, after string) (*gql.ProjectPage, error) {
		answer, err := gql.ListProjects(ctx, t, first, after)
		return &answer.Viewer.Projects, err
	})
}
