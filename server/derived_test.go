package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// intruder is somebody without a role of their own, in the tenant of a project.
type intruder struct {
	*bench
	person  *db.User
	session string
	project *db.Project
}

func (b *bench) intruder() *intruder {
	tenant := b.Kit.Tenant()
	person := b.Kit.User(tenant)
	return &intruder{bench: b, person: person, session: b.Session(person), project: b.Kit.Project(tenant)}
}

// glass gives a role for five minutes under break-glass, and answers the binding's id.
func (i *intruder) glass(role string) string {
	i.t.Helper()
	got := i.post(i.Session(i.Operator()),
		`mutation($input: BreakGlassGrantRoleInput!) { breakGlassGrantRole(input: $input) { id } }`,
		arguments{"input": object{
			"subjectId": i.person.ID, "role": role, "projectId": i.project.ID, "durationMinutes": 5,
			"reason": "the admins of the project are not to be reached"}})
	require.Empty(i.t, got.Errors, got.Raw)
	return between(got.Data, `"id":"`)
}

// account makes a service account with a key, and answers both with the key's end.
func (i *intruder) account(token, name string, keys ...string) (id, secret, ends string) {
	i.t.Helper()
	made := i.post(token, `mutation($input: CreateServiceAccountInput!) { createServiceAccount(input: $input) { id } }`,
		arguments{"input": object{
			"projectId": i.project.ID, "name": name, "permissionKeys": keys, "idempotencyKey": name}})
	require.Empty(i.t, made.Errors, made.Raw)
	id = between(made.Data, `"id":"`)
	secret, ends = i.key(token, id)
	return id, secret, ends
}

// key makes a key without naming an end.
func (i *intruder) key(token, account string) (secret, ends string) {
	i.t.Helper()
	made := i.post(token,
		`mutation($input: CreateServiceAccountKeyInput!) { createServiceAccountKey(input: $input) { secret key { expiresAt } } }`,
		arguments{"input": object{"serviceAccountId": account}})
	require.Empty(i.t, made.Errors, made.Raw)
	return between(made.Data, `"secret":"`), between(made.Data, `"expiresAt":"`)
}

// works reports whether a credential reads the project.
func (i *intruder) works(token string) string {
	return i.post(token, `query($id: ID!) { project(id: $id) { slug } }`, arguments{"id": i.project.ID}).code()
}

// between is what follows a mark, up to the next quote.
func between(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	found, _, _ := strings.Cut(rest, `"`)
	return found
}

// Somebody who is let in for five minutes leaves doors behind: an account with a key, a webhook, a role for an
// accomplice. All of them close with the grant, when it is taken away or over, and open with no later one.
func TestWhatIsMadeUnderBreakGlassEndsWithItAndIsListed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"taken away": `UPDATE role_binding SET revoked_at = now() WHERE id = $1`,
		"over":       `UPDATE role_binding SET expires_at = now() - interval '1 second' WHERE id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			i := b.intruder()
			accomplice := b.Kit.User(&db.Tenant{ID: i.project.TenantID})
			accomplices := b.Session(accomplice)
			binding := i.glass("project_admin")
			account, door, ends := i.account(i.session, "door", "project.read", "apps.instance.read")
			until, err := time.Parse(time.RFC3339, ends)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(5*time.Minute), until, time.Minute,
				"the key shows when it ends at the latest")
			soon := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
			given := b.post(i.session,
				`mutation($input: GrantRoleInput!) { grantRole(input: $input) { id madeUnder } }`,
				arguments{"input": object{
					"subjectId": accomplice.ID, "role": "project_viewer", "projectId": i.project.ID,
					"expiresAt": soon}})
			require.Contains(t, given.Data, binding, given.Raw)
			b.SQL(`INSERT INTO webhook (id, tenant_id, project_id, url, event_types, families, status, maker_id,
				made_under,
				created_at, updated_at)
				VALUES ('whk_x', $1, $2, 'https://hooks.test/x', '["apps.*"]', '["apps"]', 'ACTIVE', $3, $4, now(),
				now())`,
				i.project.TenantID, i.project.ID, i.person.ID, binding)
			require.Empty(t, i.works(door))
			require.Empty(t, i.works(accomplices))

			b.SQL(end, binding)
			require.Equal(t, string(fault.Unauthenticated), i.works(door))
			require.Equal(t, string(fault.NotFound), i.works(accomplices))
			require.Equal(t, string(fault.NotFound), i.works(i.session))
			i.glass("project_admin")
			require.Empty(t, i.works(i.session), "there is another emergency")
			require.Equal(t, string(fault.Unauthenticated), i.works(door), "which opens nothing of the first")
			require.Equal(t, string(fault.NotFound), i.works(accomplices))

			listed := b.post(b.Session(b.Operator()), `query($id: ID!) { madeUnder(bindingId: $id) { kind id ended } }`,
				arguments{"id": binding})
			require.Empty(t, listed.Errors, listed.Raw)
			for _, kind := range []string{"SERVICE_ACCOUNT", "SERVICE_ACCOUNT_KEY", "WEBHOOK", "ROLE_BINDING"} {
				require.Contains(t, listed.Data, `"kind":"`+kind+`"`)
			}
			require.Contains(t, listed.Data, account)
			require.NotContains(t, listed.Data, `"ended":false`)
		})
	}
}

// A right for a while makes no key for ever: the key ends with the role, of whose end it says, and explanations agree.
func TestAKeyEndsWithTheRoleOfWhoeverMadeIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	i := b.intruder()
	hour := time.Now().Add(time.Hour).Truncate(time.Second)
	grant := platformtest.In(authz.ProjectAdmin, i.project)
	grant.ExpiresAt = &hour
	role := b.Bind(i.person, grant)
	account, key, ends := i.account(i.session, "robot", "project.read", "apps.instance.create")
	until, err := time.Parse(time.RFC3339, ends)
	require.NoError(t, err)
	require.True(t, until.Equal(hour), "%s is not %s", until, hour)
	require.Empty(t, i.works(key))

	b.Bind(i.person, platformtest.In(authz.ProjectViewer, i.project))
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, role.ID)
	require.Empty(t, i.works(key), "its maker still reads the project")
	const why = `query($input: ExplainPermissionInput!) { explainPermission(input: $input) { allowed missing { message } } }`
	for permission, allowed := range map[string]string{"project.read": "true", "apps.instance.create": "false"} {
		for _, asks := range []object{{"permissionKey": permission, "objectId": i.project.ID},
			{"permissionKey": permission, "objectId": i.project.ID, "subjectId": account}} {
			token := key
			if asks["subjectId"] != nil {
				token = b.Session(b.Operator())
			}
			require.Contains(t, b.post(token, why, arguments{"input": asks}).Data, `"allowed":`+allowed, "%v", asks)
		}
	}
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, i.person.ID)
	require.Equal(t, string(fault.Unauthenticated), i.works(key), "its maker reads it no more")
}

// An account outlives its maker when someone else answers for it; the keys that the maker knows do not.
func TestAnAccountGoesOnUnderWhoeverAnswersForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	i := b.intruder()
	b.Bind(i.person, platformtest.In(authz.ProjectAdmin, i.project))
	account, old, _ := i.account(i.session, "pipeline", "project.read")
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, i.person.ID)
	require.Equal(t, string(fault.Unauthenticated), i.works(old))
	next := b.Kit.User(&db.Tenant{ID: i.project.TenantID}, platformtest.In(authz.ProjectAdmin, i.project))
	took := b.post(b.Session(next),
		`mutation($input: UpdateServiceAccountInput!) { updateServiceAccount(input: $input) { makerId } }`,
		arguments{"input": object{
			"serviceAccountId": account, "permissionKeys": []string{"project.read"}, "reason": "mine now"}})
	require.Contains(t, took.Data, string(next.ID), took.Raw)
	fresh, _ := i.key(b.Session(next), account)
	require.Empty(t, i.works(fresh))
	require.Equal(t, string(fault.Unauthenticated), i.works(old))
}

// Under break-glass no one widens an account that goes on afterwards.
func TestAnAccountThatGoesOnIsNotWidenedUnderBreakGlass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	i := b.intruder()
	account, _ := b.ServiceAccount(i.project, authz.ProjectRead)
	i.glass("project_admin")
	refused := b.post(i.session, limitsDocument, arguments{"input": object{"serviceAccountId": account.ID,
		"permissionKeys": []string{"project.read", "apps.instance.read"}}})
	require.Equal(t, string(fault.FailedPrecondition), refused.code(), refused.Raw)
	require.Equal(t, 1, b.Count("service_account", `permission_keys = '["project.read"]'`))
}

// A key has a longest life, also where the request names no end.
func TestKeysHaveALongestLife(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.KeyLife = 48 * time.Hour })
	i := b.intruder()
	b.Bind(i.person, platformtest.In(authz.ProjectAdmin, i.project))
	account, _, ends := i.account(i.session, "robot", "project.read")
	until, err := time.Parse(time.RFC3339, ends)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(48*time.Hour), until, time.Minute)
	before := b.fingerprint()
	refused := b.post(i.session,
		`mutation($input: CreateServiceAccountKeyInput!) { createServiceAccountKey(input: $input) { secret } }`,
		arguments{"input": object{"serviceAccountId": account,
			"expiresAt": time.Now().Add(49 * time.Hour).UTC().Format(time.RFC3339)}})
	require.Equal(t, string(fault.InvalidArgument), refused.code())
	require.Contains(t, refused.paths(), "input.expiresAt")
	require.Equal(t, before, b.fingerprint())
	require.Equal(t, 365*24*time.Hour, Defaults().KeyLife)
}
