package explain_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

var seed = flag.Uint64("seed", 0, "seed of the random subjects; 0 for a new one")

// questions is how many random permissions are checked: by a verb, and by its explanation.
const questions = 400

// thing is an object with what a verb would load of it.
type thing struct {
	id    ids.ID
	where authz.Object
}

// things are objects of a house and of the platform.
func (h *house) things() []thing {
	in := authz.Object{TenantID: h.tenant.ID, ProjectID: h.first.ID}
	of := in
	of.InstanceID = h.instance.ID
	allocated := of
	allocated.AllocationID = h.allocation.ID
	return []thing{
		{"", authz.Object{}}, {h.tenant.ID, authz.Object{TenantID: h.tenant.ID}}, {h.first.ID, in},
		{h.second.ID, authz.Object{TenantID: h.tenant.ID, ProjectID: h.second.ID}}, {h.instance.ID, of},
		{h.app.ID, in}, {h.manifest.ID, in}, {h.operation.ID, of}, {h.allocation.ID, allocated},
		{h.admin.ID, authz.Object{TenantID: h.tenant.ID}},
	}
}

// somebody makes a random subject and answers its id and a context that carries its credential.
func (b *bench) somebody(r *rand.Rand) (ids.ID, context.Context) {
	homes := []*house{b.mine, b.other}
	home := homes[r.IntN(2)]
	project := home.first
	if r.IntN(3) == 0 {
		project = home.second
	}
	keys := make([]authz.Key, 12)
	for i := range keys {
		keys[i] = authz.Keys()[r.IntN(len(authz.Keys()))]
	}
	switch r.IntN(5) {
	case 0, 1:
		account, key := b.ServiceAccount(project, keys...)
		limits := authz.Limits{MaxRisk: append(risks, "")[r.IntN(4)]}
		if r.IntN(2) == 0 {
			limits.Objects = []ids.ID{[]ids.ID{home.instance.ID, home.allocation.ID}[r.IntN(2)]}
		}
		b.SQL(`UPDATE service_account SET limits = $1 WHERE id = $2`, limits, account.ID)
		return account.ID, b.With(key)
	case 2:
		person := b.Operator()
		return person.ID, b.As(person)
	}
	person := b.User(home.tenant)
	roles := authz.Roles()
	for range r.IntN(4) {
		role := roles[r.IntN(len(roles))].Role
		at := homes[r.IntN(2)]
		grant := []platformtest.Grant{platformtest.In(role, at.first), platformtest.In(role, at.second),
			platformtest.Across(role, at.tenant)}[r.IntN(3)]
		if r.IntN(4) == 0 {
			ends := time.Now().Add(time.Duration(r.IntN(3)-1) * time.Hour)
			grant.ExpiresAt = &ends
		}
		row := b.Bind(person, grant)
		if r.IntN(4) == 0 {
			b.SQL(`UPDATE role_binding SET break_glass = true WHERE id = $1`, row.ID)
		}
		if r.IntN(5) == 0 {
			b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, row.ID)
		}
	}
	return person.ID, b.As(person)
}

// errUndone rolls back a transaction that only checked.
var errUndone = errors.New("only asked")

// risks are those of app actions.
var risks = []lifecycle.ActionRisk{lifecycle.RiskRead, lifecycle.RiskWrite, lifecycle.RiskDestructive}

// catalogued reports whether the catalog's reads admit every holder of the key, wherever it is held.
func catalogued(key authz.Key, id ids.ID) bool {
	return (id.Is(ids.App) || id.Is(ids.Manifest)) &&
		(key == authz.ManifestRead || key == authz.ArtifactRead ||
			slices.Contains(authz.FamilyKeys("catalog.read"), key))
}

// verb reports whether a verb that requires the key on the object, for an app action of the risk if there is one, would
// go on.
func (b *bench) verb(ctx context.Context, key authz.Key, on thing, risk lifecycle.ActionRisk) (allowed bool) {
	b.t.Helper()
	err := b.Kit.DB.Write(ctx, func(_ context.Context, t *tx.Tx) error {
		allowed = audit.Require(t, "asked", key, on.where, on.id) == nil
		if catalogued(key, on.id) {
			allowed = authz.RequireAnywhere(t.Actor, key) == nil
		}
		if risk != "" && t.Actor.RequireRisk(risk) != nil {
			allowed = false
		}
		return errUndone
	})
	require.ErrorIs(b.t, err, errUndone)
	return allowed
}

func TestExplanationAgreesWithTheVerbsOverTheDatabase(t *testing.T) {
	t.Parallel()
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./service/explain -run %s -seed %d", from, t.Name(), from)
	b := newBench(t)
	r := rand.New(rand.NewPCG(from, 4))
	things := append(b.mine.things(), b.other.things()...)
	held := map[bool]int{}
	for range questions / 10 {
		who, as := b.somebody(r)
		for range 10 {
			key, on := authz.Keys()[r.IntN(len(authz.Keys()))], things[r.IntN(len(things))]
			risk := append(risks, "", "")[r.IntN(5)]
			is := b.verb(as, key, on, risk)
			held[is]++
			said := b.explained(b.operator, who, on.id, key, risk)
			require.Equal(t, is, said.Allowed, "%s of %s on %+v, risk %q: %+v", key, who, on, risk, said)
			if own, err := b.ask(as, "", on.id, key, risk); err == nil { // else the object is hidden from it
				require.Equal(t, is, own.Allowed, "%s of %s itself on %+v", key, who, on)
			} else {
				require.False(t, is, "%s of %s on %+v: %v", key, who, on, err)
			}
		}
	}
	require.Greater(t, held[true], questions/20)
	require.Greater(t, held[false], questions/20)
}
