package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// What other tenants get may need all conditions: by a check that was kept, and as they are now.
func TestAVersionForAllIsHeldToOnboardingWhereItsTermsSayIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	canary := b.Manifest(lifecycle.StageCanary, w.document("1.0.0"))
	terms := func(required bool) {
		_, err := b.trust.SetTerms(b.operator, trust.TermsInput{AppSlug: w.app.Slug, RequireOnboarding: required,
			Reason: "policy"})
		require.NoError(t, err)
	}
	step := catalog.PromoteManifestInput{ManifestID: canary.ID, To: lifecycle.StageActive, Reason: "ready"}
	terms(true)
	_, err := b.verbs.PromoteManifest(b.operator, step)
	require.True(t, fault.Is(err, fault.EvidenceMissing))
	for _, says := range []string{"no onboarding check was recorded", "onboarding LIFECYCLE_EVENTS is NOT_KNOWN",
		"onboarding ARTIFACT_SOURCES is FAILED", "onboarding SUPPORT_RUNBOOK is FAILED",
		"onboarding TENANT_BOUNDARY is NOT_KNOWN"} {
		require.ErrorContains(t, err, says)
	}
	lacking, err := b.verbs.Lacks(b.operator, ids1(canary))
	require.NoError(t, err)
	require.Contains(t, lacking[canary.ID][len(lacking[canary.ID])-1].Message, "no onboarding check was recorded")
	ready := &onboarding.Service{DB: b.DB}
	_, err = ready.Check(b.operator, onboarding.CheckInput{AppSlug: w.app.Slug, Version: "1.0.0"})
	require.NoError(t, err)
	_, err = b.verbs.PromoteManifest(b.operator, step)
	require.ErrorContains(t, err, "the newest recorded onboarding check lacks CONTRACTS")
	require.Equal(t, lifecycle.StageCanary, b.stage(canary))
	require.Zero(t, b.Count("promotion", ""), "nothing was written")

	b.SQL(`UPDATE onboarding_record SET lacking = '{}'`)
	_, err = b.verbs.PromoteManifest(b.operator, step)
	require.ErrorContains(t, err, "onboarding SUPPORT_RUNBOOK is FAILED", "what was kept must still hold")
	require.NotContains(t, err.Error(), "onboarding check lacks")

	step.Override = "the platform's staff takes it on itself"
	_, err = b.verbs.PromoteManifest(b.operator, step)
	require.NoError(t, err)
	next := b.Manifest(lifecycle.StageCanary, w.document("1.1.0"))
	terms(false)
	_, err = b.verbs.PromoteManifest(b.operator, catalog.PromoteManifestInput{ManifestID: next.ID,
		To: lifecycle.StageActive, Reason: "no terms"})
	require.NoError(t, err, "off unless the terms say it")
}
