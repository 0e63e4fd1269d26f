package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

const addsUser = `mutation($input: CreateUserInput!) { createUser(input: $input) { id email displayName tenantId invitedAt acceptedAt disabledAt lastLoginAt } }`

// An admin adds addresses to a tenant of their own: of another tenant's admin, of its people, of the platform's staff,
// and an unknown one. All answers are the same, and none keeps the owner of an address from anything.
func TestAnswersAboutAnAddressDoNotTellWhoIsElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, theirs := b.Kit.Tenant(), b.Kit.Tenant()
	attacker := b.Session(b.Kit.User(mine, platformtest.Across(authz.TenantAdmin, mine)))
	chief := b.Kit.User(theirs, platformtest.Across(authz.TenantAdmin, theirs))
	addresses := map[string]string{"an admin": chief.Email, "somebody": b.Kit.User(theirs).Email,
		"staff": b.Operator().Email, "nobody": "nobody@nowhere.test"}
	add := func(session string, tenant *db.Tenant, email string) answer {
		return b.post(session, addsUser, arguments{"input": object{"tenantId": tenant.ID, "email": email,
			"displayName": "X", "idempotencyKey": email}})
	}
	var said []string
	for who, email := range addresses {
		before := b.Count("person", "email = $1 AND (tenant_id IS NULL OR tenant_id <> $2)", email, mine.ID)
		given := add(attacker, mine, email)
		require.Empty(t, given.Errors, "%s: %s", who, given.Raw)
		var made struct {
			CreateUser struct{ ID, Email, InvitedAt string }
		}
		require.NoError(t, json.Unmarshal([]byte(given.Data), &made))
		require.NotEmpty(t, made.CreateUser.InvitedAt, who)
		said = append(said, strings.NewReplacer(made.CreateUser.ID, "ID", made.CreateUser.Email, "EMAIL",
			made.CreateUser.InvitedAt, "AT").Replace(given.Data))
		invited := b.post(attacker, `mutation($id: ID!) { inviteUser(userId: $id) { url } }`,
			arguments{"id": made.CreateUser.ID})
		require.Empty(t, invited.Errors, "%s: %s", who, invited.Raw)
		staff := b.post(attacker, addsUser, arguments{"input": object{"email": email, "displayName": "X",
			"idempotencyKey": "staff " + email}})
		require.Equal(t, string(fault.Forbidden), staff.code(), "%s: %s", who, staff.Raw)
		require.Equal(t, before, b.Count("person", "email = $1 AND (tenant_id IS NULL OR tenant_id <> $2)",
			email, mine.ID),
			who)
	}
	for _, each := range said {
		require.Equal(t, said[0], each)
	}
	victim := add(b.Session(chief), theirs, "nobody@nowhere.test")
	require.Empty(t, victim.Errors, "an address that a stranger took is free elsewhere: %s", victim.Raw)
	require.Equal(t, string(fault.Conflict), add(b.Session(chief), theirs, chief.Email).code(),
		"of its own people a tenant is told")
}
