package policy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Members get the weakest class that is enough and allowed, so a launch is refused when none is left.
func TestOneAllowedClassIsEnough(t *testing.T) {
	t.Parallel()
	e := Merge(at(t, lifecycle.PolicyPlatform, `{"isolationClasses":{"deny":["CONTAINER"]}}`),
		at(t, lifecycle.PolicyTenant, `{"isolationClasses":{"allow":["CONTAINER","SANDBOX","VM"]}}`))
	for class, allowed := range map[isolation.Class]bool{isolation.Container: false, isolation.Sandbox: true,
		isolation.VM: true, isolation.WholeNode: false} {
		require.Equal(t, allowed, e.ClassAllowed(class), class)
	}
	for name, c := range map[string]struct {
		some    []isolation.Class
		refused int
	}{
		"the first":           {[]isolation.Class{isolation.Sandbox, isolation.Container}, 0},
		"the last":            {[]isolation.Class{isolation.Container, isolation.WholeNode, isolation.VM}, 0},
		"none of one":         {[]isolation.Class{isolation.WholeNode}, 1},
		"none, with each why": {[]isolation.Class{isolation.Container, isolation.WholeNode}, 2},
	} {
		err := e.Classes(c.some, "input.ref")
		if c.refused == 0 {
			require.NoError(t, err, name)
			continue
		}
		require.True(t, fault.Is(err, fault.PolicyDenied), "%s: %v", name, err)
		reasons := fault.From(err).Reasons
		require.Len(t, reasons, c.refused, name)
		for _, reason := range reasons {
			require.Equal(t, []any{fault.ClassDenied, "input.ref"}, []any{reason.Code, reason.Path}, name)
		}
	}
}

func TestAProfileAStorageClassAndAWayOfAccessAreRuledByName(t *testing.T) {
	t.Parallel()
	e := platform(t, `{"memberProfiles":{"deny":["NESTING"]},"access":{"allow":["LOGS"]}}`)
	require.NoError(t, Join(e.Profile(isolation.Service, "x"), e.Access(AccessLogs, "x")))
	denied(t, e.Profile(isolation.Nesting, "input.ref"), fault.ProfileDenied, "input.ref")
	require.NoError(t, platform(t, `{"storageClasses":{"allow":["fast"]}}`).StorageClass("fast", "x"))
	denied(t, platform(t, `{"storageClasses":{"deny":["fast"]}}`).StorageClass("fast", "input.class"),
		fault.StorageClassDenied, "input.class")
	for _, way := range []Access{AccessEndpoints, AccessExec} {
		denied(t, e.Access(way, "input.kind"), fault.AccessDenied, "input.kind")
	}
}

func TestARulesMessageCountsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"regions":{"deny":["a1"]}}`:                            "denies one region",
		`{"regions":{"deny":["a1","b1"]}}`:                       "denies 2 regions",
		`{"storageClasses":{"deny":["fast"]}}`:                   "denies one storage class",
		`{"storageClasses":{"allow":["fast","slow"]}}`:           "allows only 2 storage classes",
		`{"access":{"deny":["EXEC"]}}`:                           "denies one way of access",
		`{"access":{"allow":["EXEC","LOGS"]}}`:                   "allows only 2 ways of access",
		`{"isolationClasses":{"allow":[]}}`:                      "allows no isolation class",
		`{"versions":{"allow":["hello@1","hello@2"]}}`:           "allows no other versions of the apps that it names",
		`{"artifactSources":{"deny":["a.example","b.example"]}}`: "denies 2 artifact sources",
	} {
		level := at(t, lifecycle.PolicyTenant, document)
		rules := Merge(level).Rules()
		index := slices.IndexFunc(rules, func(r *Rule) bool { return r.OverlayID == level.OverlayID })
		require.Equal(t, "the tenant's policy ("+string(*level.OverlayID)+") "+want, rules[index].Message, document)
	}
}
