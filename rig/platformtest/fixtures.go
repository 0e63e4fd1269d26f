package platformtest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Grant is a role to bind a fixture person to.
type Grant struct {
	Role            authz.Role
	tenant, project *ids.ID
	ExpiresAt       *time.Time
}

// In is a role in a project.
func In(role authz.Role, project *db.Project) Grant {
	return Grant{Role: role, tenant: &project.TenantID, project: &project.ID}
}

// Across is a role in a whole tenant.
func Across(role authz.Role, tenant *db.Tenant) Grant { return Grant{Role: role, tenant: &tenant.ID} }

// OnPlatform is a role at platform scope.
func OnPlatform(role authz.Role) Grant { return Grant{Role: role} }

// name is a word that is unique in the kit.
func (k *Kit) name(word string) string { return fmt.Sprintf("%s-%d", word, k.named.Add(1)) }

// Tenant makes a tenant.
func (k *Kit) Tenant() *db.Tenant {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("tenant")
	row, err := k.Ent.Tenant.Create().SetID(ids.New(ids.Tenant)).SetSlug(name).SetDisplayName(name).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// Project makes a project of the tenant.
func (k *Kit) Project(tenant *db.Tenant) *db.Project {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("project")
	row, err := k.Ent.Project.Create().SetID(ids.New(ids.Project)).SetTenantID(tenant.ID).SetSlug(name).
		SetDisplayName(name).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// User makes a person of the tenant, nil for platform staff, who holds the roles.
func (k *Kit) User(tenant *db.Tenant, grants ...Grant) *db.User {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	name := k.name("person")
	create := k.Ent.User.Create().SetID(ids.New(ids.User)).SetEmail(name + "@example.test").SetDisplayName(name)
	if tenant != nil {
		create.SetTenantID(tenant.ID)
	}
	row, err := create.Save(ctx)
	require.NoError(k.t, err)
	for _, grant := range grants {
		k.Bind(row, grant)
	}
	return row
}

// Operator makes a platform operator.
func (k *Kit) Operator() *db.User {
	k.t.Helper()
	return k.User(nil, OnPlatform(authz.PlatformOperator))
}

// Bind gives a person a role.
func (k *Kit) Bind(user *db.User, grant Grant) *db.RoleBinding {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	row, err := k.Ent.RoleBinding.Create().SetID(ids.New(ids.RoleBinding)).SetUserID(user.ID).
		SetRole(string(grant.Role)).
		SetNillableTenantID(grant.tenant).SetNillableProjectID(grant.project).
		SetNillableExpiresAt(grant.ExpiresAt).Save(ctx)
	require.NoError(k.t, err)
	return row
}

// Session logs a person in and answers the session's token.
func (k *Kit) Session(user *db.User) string {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	text, secret := token.Mint(token.Session)
	require.NoError(k.t, k.Ent.Session.Create().SetID(secret.ID).SetUserID(user.ID).SetSecretHash(secret.Hash).
		SetExpiresAt(time.Now().Add(time.Hour)).Exec(ctx))
	return text
}

// As is a context that carries a fresh session of the person. It ends with the test.
func (k *Kit) As(user *db.User) context.Context {
	k.t.Helper()
	return k.With(k.Session(user))
}

// With is a context that carries a credential, as the API's entrance would make it. It ends with
// the test.
func (k *Kit) With(credential string) context.Context {
	k.t.Helper()
	parsed, err := tx.ParseCredential(credential, k.Ring, time.Now())
	require.NoError(k.t, err)
	ctx := authz.WithRequest(k.t.Context(), authz.RequestInfo{CorrelationID: k.name("test"), Origin: "192.0.2.1"})
	return tx.WithCredential(ctx, parsed)
}

// ServiceAccount makes a service account of the project with an allow-list, and a key of it.
func (k *Kit) ServiceAccount(project *db.Project, keys ...authz.Key) (account *db.ServiceAccount, credential string) {
	k.t.Helper()
	ctx, cancel := k.context()
	defer cancel()
	account, err := k.Ent.ServiceAccount.Create().SetID(ids.New(ids.ServiceAccount)).SetTenantID(project.TenantID).
		SetProjectID(project.ID).SetName(k.name("account")).SetPermissionKeys(authz.MaskOf(keys...).Names()).Save(ctx)
	require.NoError(k.t, err)
	text, secret := token.Mint(token.Key)
	require.NoError(k.t, k.Ent.ServiceAccountKey.Create().SetID(secret.ID).SetTenantID(project.TenantID).
		SetProjectID(project.ID).
		SetServiceAccountID(account.ID).SetSecretHash(secret.Hash).Exec(ctx))
	return account, text
}

// OperationToken signs a token that speaks for an operation, with the keys it may use.
func (k *Kit) OperationToken(operation *db.Operation, keys ...authz.Key) string {
	k.t.Helper()
	claims := token.Claims{Operation: operation.ID, Keys: authz.OperationKeys(keys...), ID: k.name("jti"),
		ExpiresAt: time.Now().Add(time.Hour)}
	if operation.InstanceID != nil {
		claims.Instance = *operation.InstanceID
	}
	text, err := k.Ring.Sign(claims, time.Now())
	require.NoError(k.t, err)
	return text
}
