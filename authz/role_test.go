package authz

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "a right has changed: read the difference, then run go test ./authz -update")
}

func TestEveryRoleHoldsWhatTheGoldenTableSays(t *testing.T) {
	t.Parallel()
	require.NoError(t, Load())
	var out bytes.Buffer
	fmt.Fprint(&out, "role x key: ✔ held, ✘ not held. The last four columns are ceilings of machines.\n\n")
	for i, role := range roles {
		fmt.Fprintf(&out, "%s%s\n", strings.Repeat("│ ", i), role.Role)
	}
	for _, key := range Keys() {
		for _, role := range roles {
			mask := RoleMask(role.Role)
			fmt.Fprint(&out, map[bool]string{true: "✔ ", false: "✘ "}[mask.Has(key)])
		}
		fmt.Fprintln(&out, key)
	}
	golden(t, "roles.golden", out.String())
}

func TestEveryKeyIsUsableUniqueAndDescribed(t *testing.T) {
	t.Parallel()
	held := map[string]bool{}
	for _, role := range roles {
		for _, key := range RoleMask(role.Role).Keys() {
			held[key.String()] = true
		}
	}
	seen := map[string]bool{}
	for _, key := range Keys() {
		require.NotEmpty(t, key.Description(), key)
		require.False(t, seen[key.String()], "%s stands twice", key)
		require.True(t, held[key.String()], "nobody can hold %s", key)
		seen[key.String()] = true
		parsed, err := ParseKey(key.String())
		require.NoError(t, err)
		require.Equal(t, key, parsed)
	}
	require.Less(t, len(catalogue), 256, "a Mask has 256 bits")
}

func TestPolicyWithAnUnknownNameDoesNotCompile(t *testing.T) {
	t.Parallel()
	_, err := compile(modelText, policyText+"\np, project_viewer, instance.fly\n")
	require.ErrorContains(t, err, `unknown key "instance.fly"`)
	_, err = compile(modelText, policyText+"\np, emperor, tenant.read\n")
	require.ErrorContains(t, err, `unknown role "emperor"`)
	_, err = compile("[nonsense", policyText)
	require.ErrorContains(t, err, "permission model")
}

// A program fails at its start, and not at its first request, when the policy cannot be evaluated.
func TestAPolicyThatCannotBeEvaluatedDoesNotCompile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ model, policy, says string }{
		"a policy without a row": {modelText, "# nothing", "read the permission policy"},
		"a model with an unknown function": {strings.Replace(modelText, "g(r.role, p.role)", "fly(r.role)", 1),
			policyText, "evaluate the permission policy for role platform_operator and key tenant.create"},
	} {
		masks, err := compile(c.model, c.policy)
		require.ErrorContains(t, err, c.says, name)
		require.Nil(t, masks, name)
	}
}

func TestPeoplesRolesCannotBeMachinesCeilings(t *testing.T) {
	t.Parallel()
	_, err := ParseRole("service_account")
	require.True(t, fault.Is(err, fault.InvalidArgument))
	role, err := ParseRole("project_admin")
	require.NoError(t, err)
	require.NoError(t, role.BindableAt(ScopeTenant))
	require.True(t, fault.Is(role.BindableAt(ScopePlatform), fault.InvalidArgument))
	for _, entry := range Roles() {
		require.NotEmpty(t, entry.Scopes)
		require.NotEmpty(t, entry.Description)
	}
}

func TestFamilyKeysExistInEveryFamilyAlike(t *testing.T) {
	t.Parallel()
	for _, key := range Keys() {
		if suffix, ok := strings.CutPrefix(key.String(), "apps."); ok {
			require.Len(t, FamilyKeys(suffix), len(Families()), suffix)
		}
	}
	key, err := FamilyKey("scheduler", "queue.submit")
	require.NoError(t, err)
	require.Equal(t, SchedulerQueueSubmit, key)
	_, err = FamilyKey("tenant", "create")
	require.True(t, fault.Is(err, fault.InvalidArgument), "a platform key is of no family")
	_, err = FamilyKey("apps", "queue.fly")
	require.True(t, fault.Is(err, fault.InvalidArgument))
	require.Empty(t, FamilyKeys("queue.fly"))
}

func TestOperationKeysStayBelowTheCeiling(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"task.run", "apps.instance.read"}, OperationKeys(AppsInstanceRead, TaskRun, TenantCreate))
	require.Contains(t, RoleMask(ceilingServiceAccount).Keys(), AppsInstanceCreate)
	require.NotContains(t, RoleMask(ceilingServiceAccount).Keys(), TaskRun)
}

func TestMaskSetOperations(t *testing.T) {
	t.Parallel()
	a, b := MaskOf(TenantRead, SchedulerMemberRecover), MaskOf(TenantRead, TaskRun)
	require.Equal(t, MaskOf(TenantRead), a.Intersect(b))
	require.Equal(t, MaskOf(SchedulerMemberRecover), a.Minus(b))
	require.Equal(t, []Key{TenantRead, TaskRun, SchedulerMemberRecover}, a.Union(b).Keys())
	require.True(t, Mask{}.Empty())
	require.True(t, slices.IsSorted(Keys()))
	require.Equal(t, "none", Key(0).String())
	require.Equal(t, "none", Key(255).String())
	require.Empty(t, Key(255).Description())
}

func TestManifestsFamiliesAreTheCatalogues(t *testing.T) {
	t.Parallel()
	require.Equal(t, manifest.Families(), Families())
	for _, suffix := range manifest.FamilySuffixes() {
		require.Len(t, FamilyKeys(suffix), len(Families()), suffix)
	}
	inFamilies := 0
	for _, key := range Keys() {
		family, _, _ := strings.Cut(key.String(), ".")
		if slices.Contains(Families(), family) {
			inFamilies++
		}
	}
	require.Equal(t, len(manifest.Families())*len(manifest.FamilySuffixes()), inFamilies)
}

func TestEveryOperationKindAsksForAKeyThatExists(t *testing.T) {
	t.Parallel()
	for _, effects := range lifecycle.Kinds() {
		if effects.Wire == "" {
			_, err := ParseKey(effects.Permission)
			require.NoError(t, err)
			continue
		}
		require.Len(t, FamilyKeys(effects.Permission), len(Families()), effects.Kind)
	}
}
