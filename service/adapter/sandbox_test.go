package adapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/sandbox"
)

func TestAPublisherRegistersAnAdapterInItsSandboxUntilTheStaffOpensIt(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project, sibling := kit.Project(tenant), kit.Project(tenant)
	_, credential := kit.ServiceAccount(project, authz.SandboxManage)
	_, second := kit.ServiceAccount(sibling, authz.SandboxManage)
	publisher, beside, operator := kit.With(credential), kit.With(second), kit.As(kit.Operator())
	foreign := kit.Tenant()
	stranger := kit.As(kit.User(foreign, platformtest.Across(authz.TenantAdmin, foreign)))
	var dialled []adapterclient.Target
	loopback, err := dial.ParsePolicy("127.0.0.1")
	require.NoError(t, err)
	verbs := &adapter.Service{DB: kit.DB, Trust: adapterclient.Trust{Sandbox: loopback},
		Describe: func(_ context.Context, target adapterclient.Target) (json.RawMessage, error) {
			dialled = append(dialled, target)
			return json.RawMessage(`{"build": "` + target.URL + `"}`), nil
		}}
	in := adapter.SandboxInput{ProjectID: project.ID, Name: tenant.Slug + "-one", URL: "http://127.0.0.1:9100"}
	made, err := verbs.RegisterSandbox(publisher, in)
	require.NoError(t, err)
	require.Equal(t, project.ID, *made.ProjectID)
	require.NotEmpty(t, made.Description)
	require.True(t, dialled[0].Sandbox, "by the policy of sandboxes")
	in.URL = "https://adapter.example.com"
	moved, err := verbs.RegisterSandbox(publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, moved.ID)
	require.Equal(t, in.URL, moved.URL)
	require.Equal(t, 2, kit.Count("audit_entry", "action = 'registerSandboxAdapter' AND allowed AND project_id = $1",
		project.ID))

	before := len(dialled)
	change := func(how func(*adapter.SandboxInput)) adapter.SandboxInput {
		wrong := in
		how(&wrong)
		return wrong
	}
	for name, c := range map[string]struct {
		as   context.Context
		in   adapter.SandboxInput
		code fault.Code
		path string
	}{
		"cloud metadata": {publisher, change(func(in *adapter.SandboxInput) { in.URL = "http://169.254.169.254" }),
			fault.DialRefused, "input.url"},
		"the inner network": {publisher, change(func(in *adapter.SandboxInput) { in.URL = "https://10.0.0.1" }),
			fault.DialRefused, "input.url"},
		"the Internet without TLS": {publisher, change(func(in *adapter.SandboxInput) { in.URL = "http://8.8.8.8" }),
			fault.DialRefused, "input.url"},
		"loopback in disguise": {publisher, change(func(in *adapter.SandboxInput) { in.URL = "https://2130706433" }),
			fault.DialRefused, "input.url"},
		"a name of others": {publisher, change(func(in *adapter.SandboxInput) { in.Name = "slurm" }),
			fault.InvalidArgument, "input.name"},
		"the name in a sibling": {beside, change(func(in *adapter.SandboxInput) { in.ProjectID = sibling.ID }),
			fault.Conflict, "input.name"},
		"another tenant": {stranger, in, fault.NotFound, ""},
		"the staff":      {operator, in, fault.Forbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verbs.RegisterSandbox(c.as, c.in)
			platformtest.Refused(t, err, c.code, c.path)
		})
	}
	_, err = verbs.Register(publisher, adapter.RegisterInput{Name: in.Name, URL: in.URL})
	platformtest.Refused(t, err, fault.Forbidden)
	require.Contains(t, err.Error(), "sandbox.manage", "it says what a publisher can do alone")
	require.Len(t, dialled, before, "nobody is dialled for a refusal")
	require.Equal(t, 1, kit.Count("adapter", "url = $1", in.URL))

	list, err := verbs.InSandbox(project.ID)(publisher, page.Args{First: 5})
	require.NoError(t, err)
	require.Len(t, list.Rows, 1)
	_, err = verbs.Adapter(publisher, made.ID)
	require.NoError(t, err)
	for _, as := range []context.Context{stranger, beside} {
		_, err = verbs.InSandbox(project.ID)(as, page.Args{First: 5})
		platformtest.Refused(t, err, fault.NotFound, "")
	}

	opened, err := verbs.Register(operator, adapter.RegisterInput{Name: in.Name, URL: "http://127.0.0.1:9100"})
	require.NoError(t, err)
	require.Equal(t, made.ID, opened.ID, "it is the same adapter")
	require.Nil(t, opened.ProjectID)
	_, err = verbs.RegisterSandbox(publisher, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.name")
	require.Zero(t, kit.Count("adapter", "url = $1", in.URL))
}

func TestATenantHasABoundedNumberOfSandboxedAdapters(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	_, credential := kit.ServiceAccount(project, authz.SandboxManage)
	publisher := kit.With(credential)
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	})}
	in := adapter.SandboxInput{ProjectID: project.ID, Name: tenant.Slug + "-one", URL: "https://adapter.example.com"}
	_, err := verbs.RegisterSandbox(publisher, in)
	require.NoError(t, err)
	for i := range sandbox.Most - 1 {
		kit.SQL(`INSERT INTO adapter (id, name, url, tenant_id, project_id, created_at)
			VALUES ($1, $2, '', $3, $4, now())`,
			ids.New(ids.Adapter), fmt.Sprintf("%s-filler-%d", tenant.Slug, i), tenant.ID, project.ID)
	}
	in.URL = "https://adapter.example.com/moved"
	_, err = verbs.RegisterSandbox(publisher, in)
	require.NoError(t, err, "one that is there may still move")
	in.Name = tenant.Slug + "-more"
	_, err = verbs.RegisterSandbox(publisher, in)
	platformtest.Refused(t, err, fault.LimitExceeded, "input.projectId")
	require.Equal(t, sandbox.Most, kit.Count("adapter", ""))
}

func TestAnAdapterIsRegisteredWithTheAccountThatItActsBy(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	})}
	operator := kit.As(kit.Operator())
	acts, _ := kit.ServiceAccount(kit.Project(kit.Tenant()), authz.AdapterAct)
	lacks, _ := kit.ServiceAccount(kit.Project(kit.Tenant()), authz.AppsInstanceRead)
	in := adapter.RegisterInput{Name: "demo", URL: "http://127.0.0.1:8080", ServiceAccountID: &lacks.ID}
	_, err := verbs.Register(operator, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.serviceAccountId")
	require.Contains(t, err.Error(), "adapter.act")
	unknown := ids.New(ids.ServiceAccount)
	in.ServiceAccountID = &unknown
	_, err = verbs.Register(operator, in)
	platformtest.Refused(t, err, fault.NotFound, "input.serviceAccountId")
	require.Zero(t, kit.Count("adapter", ""), "a refusal writes nothing")

	in.ServiceAccountID = &acts.ID
	made, err := verbs.Register(operator, in)
	require.NoError(t, err)
	require.Equal(t, acts.ID, *made.ServiceAccountID)
	in.ServiceAccountID = nil
	again, err := verbs.Register(operator, in)
	require.NoError(t, err)
	require.Equal(t, acts.ID, *again.ServiceAccountID, "left out, it stays")
	none := ids.ID("")
	in.ServiceAccountID = &none
	again, err = verbs.Register(operator, in)
	require.NoError(t, err)
	require.Nil(t, again.ServiceAccountID)
	require.Equal(t, 2, kit.Count("audit_entry", `allowed AND before->>'serviceAccountId' = $1`, acts.ID))
}

func TestAnAdapterOfASandboxActsByAnAccountOfItsOwnProject(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	verbs := &adapter.Service{DB: kit.DB, Describe: describe(func(string, string) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	})}
	verbs.Trust.Sandbox = dial.Loopback()
	own, _ := kit.ServiceAccount(project, authz.AdapterAct)
	sibling, _ := kit.ServiceAccount(kit.Project(tenant), authz.AdapterAct)
	in := adapter.SandboxInput{ProjectID: project.ID, Name: tenant.Slug + "-demo", URL: "http://127.0.0.1:8080",
		ServiceAccountID: &sibling.ID}
	ctx := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	_, err := verbs.RegisterSandbox(ctx, in)
	platformtest.Refused(t, err, fault.NotFound, "input.serviceAccountId")
	require.Zero(t, kit.Count("adapter", ""))
	in.ServiceAccountID = &own.ID
	for range 2 { // added, and changed
		made, err := verbs.RegisterSandbox(ctx, in)
		require.NoError(t, err)
		require.Equal(t, own.ID, *made.ServiceAccountID)
		in.ServiceAccountID = nil
	}
	opened, err := verbs.Register(kit.As(kit.Operator()), adapter.RegisterInput{Name: in.Name, URL: in.URL})
	require.NoError(t, err)
	require.Nil(t, opened.ServiceAccountID, "as everybody's adapter it does not act by its publisher's choice")
}
