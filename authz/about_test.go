package authz

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A log line names one object: the first that the request needs a permission on, or a later one that says more of it.
func TestARequestIsAboutTheFirstObjectThatItNeeds(t *testing.T) {
	t.Parallel()
	tenant := Object{TenantID: tenant1}
	project := Object{TenantID: tenant1, ProjectID: project1}
	instance := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins1}
	app := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins1, AppSlug: "demo"}
	elsewhere := Object{TenantID: tenant1, ProjectID: project2, InstanceID: ins2, AppSlug: "demo"}
	stranger := Object{TenantID: tenant2, ProjectID: project3, InstanceID: ins2, AppSlug: "demo"}
	beside := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins2, AppSlug: "other"}
	on := func(object Object) Object { object.NodeID = nod1; return object }
	for name, c := range map[string]struct {
		needs []Object
		want  Object
	}{
		"nothing":                               {nil, Object{}},
		"what belongs to the platform":          {[]Object{{NodeID: nod1}}, Object{}},
		"a tenant's after the platform's":       {[]Object{{}, project}, project},
		"a project of the tenant":               {[]Object{tenant, project}, project},
		"an instance of the tenant":             {[]Object{tenant, instance}, instance},
		"an instance of the project":            {[]Object{project, instance}, instance},
		"the app of the instance":               {[]Object{instance, app}, app},
		"all of them in turn":                   {[]Object{tenant, project, instance, app}, app},
		"the tenant of the project":             {[]Object{project, tenant}, project},
		"the project of the instance":           {[]Object{instance, project}, instance},
		"the instance without its app":          {[]Object{app, instance}, app},
		"no more than the tenant":               {[]Object{tenant, on(tenant)}, tenant},
		"no more than the project":              {[]Object{project, on(project)}, project},
		"no more than the instance":             {[]Object{instance, on(instance)}, instance},
		"no more than the app":                  {[]Object{app, on(app)}, app},
		"another instance":                      {[]Object{instance, beside}, instance},
		"another project's instance":            {[]Object{project, elsewhere}, project},
		"another tenant's instance":             {[]Object{tenant, stranger}, tenant},
		"another tenant's, after the project's": {[]Object{project, stranger}, project},
	} {
		ctx := WithAbout(t.Context(), &About{})
		actor := Noting(ctx, System("test"))
		for _, object := range c.needs {
			require.NoError(t, RequireOn(actor, TenantRead, object))
		}
		require.Equal(t, c.want, AboutOf(ctx), name)
		kept := WithAbout(t.Context(), &About{})
		for _, object := range c.needs {
			Note(kept, object)
		}
		require.Equal(t, c.want, AboutOf(kept), "%s, without a decision", name)
	}
}

func TestAnActorIsSharedByRequestsThatNoteApart(t *testing.T) {
	t.Parallel()
	shared, here := System("test"), Object{TenantID: tenant1}
	require.Same(t, shared, Noting(t.Context(), shared), "a request that collects nothing needs no copy")
	Note(t.Context(), here)
	require.Empty(t, AboutOf(t.Context()))
	first, second := WithAbout(t.Context(), &About{}), WithAbout(t.Context(), &About{})
	require.Nil(t, Noting(first, nil))
	require.NoError(t, RequireOn(Noting(first, shared), TenantRead, here))
	require.NoError(t, RequireOn(shared, TenantRead, Object{TenantID: tenant2}))
	require.Equal(t, here, AboutOf(first))
	require.Empty(t, AboutOf(second))
}
