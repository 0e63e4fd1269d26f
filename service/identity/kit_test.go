package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// bench is the service under test. Where both have a name, it is the fixture.
type bench struct {
	*platformtest.Kit
	*identity.Service
	t *testing.T
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	return &bench{Kit: kit, Service: &identity.Service{DB: kit.DB, DevLogins: true,
		PublicURL: platformtest.Issuer}, t: t}
}

func (b *bench) Tenant() *db.Tenant                    { return b.Kit.Tenant() }
func (b *bench) Project(tenant *db.Tenant) *db.Project { return b.Kit.Project(tenant) }
func (b *bench) User(tenant *db.Tenant, grants ...platformtest.Grant) *db.User {
	return b.Kit.User(tenant, grants...)
}
func (b *bench) ServiceAccount(project *db.Project, keys ...authz.Key) (*db.ServiceAccount, string) {
	return b.Kit.ServiceAccount(project, keys...)
}

// audited wants exactly one audit entry of the action, allowed or refused with the code.
func (b *bench) audited(action, code string) {
	b.t.Helper()
	n := 0
	for _, entry := range b.Audit() {
		if entry.Action == action && entry.Code == code && entry.Allowed == (code == "") {
			n++
		}
	}
	require.Equal(b.t, 1, n, "audit entries of %s with code %q", action, code)
}
