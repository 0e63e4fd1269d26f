package instance_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/posix"
)

// accounts is a bench with an instance of an app that acts as the accounts of people.
type accounts struct {
	*bundle
	started *instance.Started
	asked   int
}

func withAccounts(t *testing.T) *accounts {
	t.Helper()
	b := setup(t)
	document := b.document("1.1.0")
	document["requires"] = map[string]any{"identities": "posix"}
	stored := b.Manifest(lifecycle.StageDeprecated, document)
	a := &accounts{bundle: b, started: b.running()}
	b.SQL(`UPDATE instance SET manifest_id = $1 WHERE id = $2`, stored.ID, a.started.Instance.ID)
	return a
}

// person is somebody of the project, by an address and a name for people.
func (a *accounts) person(email, shown string) *db.User {
	a.t.Helper()
	user := a.User(a.tenant, platformtest.In(authz.ProjectMember, a.project))
	a.SQL(`UPDATE person SET email = $2, display_name = $3 WHERE id = $1`, user.ID, email, shown)
	return user
}

// act is an action of somebody who has a credential, with a key of its own.
func (a *accounts) act(credential string) error {
	a.asked++
	in := submit(a.started)
	in.IdempotencyKey = strconv.Itoa(a.asked)
	_, err := a.service.InvokeAction(a.With(credential), in)
	return err
}

// account returns what the adapter receives about the requester of an action.
func (a *accounts) account(credential string) *adapter.PosixIdentity {
	a.t.Helper()
	require.NoError(a.t, a.act(credential))
	return a.standIn.Actions[len(a.standIn.Actions)-1].Requester.Posix
}

func TestTheAdapterActsAsThePersonThatRequests(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	ada := a.person("Ada.Lovelace@example.test", "Ada")
	first := a.account(a.Session(ada))
	require.Equal(t, &adapter.PosixIdentity{Name: "ada-lovelace", UID: 1000, GID: 1000}, first)
	robot, key := a.ServiceAccount(a.project, authz.AppsQueueSubmit)
	a.SQL(`UPDATE service_account SET name = 'root' WHERE id = $1`, robot.ID)
	require.Equal(t, &adapter.PosixIdentity{Name: "root2", UID: 1001, GID: 1001}, a.account(key),
		"a name of the system's")
	a.SQL(`UPDATE person SET email = 'countess@example.test', display_name = 'Countess' WHERE id = $1`, ada.ID)
	require.Equal(t, first, a.account(a.Session(ada)), "whatever she is called now")
	require.Equal(t, 2, a.Count("posix_identity", "tenant_id = $1", a.tenant.ID))
}

func TestAnAppThatRequiresNoIdentitiesGetsNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	_, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	require.Nil(t, b.standIn.Actions[0].Requester.Posix)
	require.Zero(t, b.Count("posix_identity", ""))
}

func TestNeitherNameNorNumberIsEverAnothers(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	gone := a.person("ada@one.test", "Ada")
	require.Equal(t, "ada", a.account(a.Session(gone)).Name)
	a.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, gone.ID)
	a.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, gone.ID)
	heir := a.Session(a.person("ada@two.test", "Ada"))
	require.Equal(t, &adapter.PosixIdentity{Name: "ada2", UID: 1001, GID: 1001}, a.account(heir))
	for _, statement := range []string{`UPDATE posix_identity SET uid = 1500`, `DELETE FROM posix_identity`,
		`TRUNCATE posix_identity`} {
		_, err := a.Admin.Exec(t.Context(), statement)
		require.ErrorContains(t, err, "append only", statement)
	}
}

func TestManyAtOnceGetAnAccountEach(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	const many = 8
	errs := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		session := a.Session(a.person(fmt.Sprintf("ci@%d.test", i), "CI"))
		in := submit(a.started)
		in.IdempotencyKey = strconv.Itoa(i)
		all.Go(func() { _, errs[i] = a.service.InvokeAction(a.With(session), in) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, many, a.Count("posix_identity", "uid BETWEEN 1000 AND $1 AND name ~ '^ci[2-8]?$'", 1000+many-1))
}

func TestATenantThatHasGivenAllIdsRefusesTheNext(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	before := a.account(a.Session(a.admin))
	a.SQL(`INSERT INTO posix_identity (tenant_id, subject_id, name, uid) VALUES ($1, 'usr_last', 'last', 59998)`,
		a.tenant.ID)
	require.Equal(t, 59999, a.account(a.Session(a.person("one@example.test", ""))).UID)
	written, asked := a.written(), len(a.standIn.Actions)
	err := a.act(a.Session(a.person("two@example.test", "")))
	platformtest.Refused(t, err, fault.FailedPrecondition, "")
	require.ErrorContains(t, err, "all its POSIX ids, 1000 to 59999")
	require.Equal(t, []any{written, asked}, []any{a.written(), len(a.standIn.Actions)}, "neither written nor sent")
	require.Equal(t, before, a.account(a.Session(a.admin)), "who has one acts on")
}

func TestAnActionThatIsRefusedGivesNoAccount(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	viewer := a.User(a.tenant, platformtest.In(authz.ProjectViewer, a.project))
	platformtest.Refused(t, a.act(a.Session(viewer)), fault.Forbidden, "")
	a.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, a.started.Instance.ID)
	platformtest.Refused(t, a.act(a.Session(a.admin)), fault.FailedPrecondition, "input.instanceId")
	require.Zero(t, a.Count("posix_identity", ""))
}

// An identity is the tenant's: the platform's staff that acts there gets one there, beside none of its own.
func TestStaffActsAsAnAccountOfTheTenant(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	staff := a.User(nil, platformtest.In(authz.ProjectMember, a.project))
	require.Equal(t, 1000, a.account(a.Session(staff)).UID)
	require.Equal(t, 1, a.Count("posix_identity", "tenant_id = $1 AND subject_id = $2", a.tenant.ID, staff.ID))
}

// The function that gives accounts gives one to its caller, and only in a tenant that the caller is of.
func TestNobodyGetsAnAccountElsewhere(t *testing.T) {
	t.Parallel()
	a := withAccounts(t)
	other := a.Tenant()
	err := a.DB.Write(a.ctx, func(ctx context.Context, t *tx.Tx) error {
		_, err := posix.Own(ctx, t, other.ID)
		return err
	})
	require.ErrorContains(t, err, "has no identity in tenant")
	require.Zero(t, a.Count("posix_identity", ""))
}
