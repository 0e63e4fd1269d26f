package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

var everyApp = flag.Bool("e2e.onboarding", false,
	"walk each reference app, and not only the quick ones: make onboarding")

// A reference app passes the seven conditions by what a real installation has recorded: an instance's whole life, its
// adapter's calls, the events, and the reports that a registered runner signs. service/onboarding has a mutant for
// each. Without a walk nothing speaks against it, and what is not known names its remedy.
func TestAReferenceAppIsReadyForOnboarding(t *testing.T) {
	needsRoot(t)
	for _, one := range []struct {
		app, change string
		long        bool
	}{
		{"hello-cluster", `{"greeting": "Good day"}`, false},
		{"web-notebook", `{"env": {"GREETING": "Good day"}}`, true},
		{"model-server", `{"restart": {"policy": "always"}}`, true},
		{"slurm", `{"backfillSeconds": 2}`, true},
	} {
		t.Run(one.app, func(t *testing.T) {
			if one.long && !*everyApp {
				t.Skip("its walk takes long: make onboarding")
			}
			ctx := bounded(t)
			apps := stack.Apps()
			app := apps[slices.IndexFunc(apps, func(app stack.App) bool { return app.Slug == one.app })]
			requireNothingAgainst(t, ctx, app.Slug)
			version, err := shared.Walk(ctx, app, json.RawMessage(one.change))
			require.NoError(t, err)
			requireReady(t, ctx, app.Slug, version)
		})
	}
}

// requireNothingAgainst requires that an app that was published and smoked, and no more, lacks a walk alone.
func requireNothingAgainst(t *testing.T, ctx context.Context, app string) {
	t.Helper()
	seen, err := gql.GetAppOnboarding(ctx, shared.Operator, app, "")
	require.NoError(t, err)
	for _, check := range seen.AppOnboarding.Checks {
		if check.Verdict == gql.OnboardingVerdictPassed {
			continue
		}
		require.Equal(t, gql.OnboardingConditionLifecycleWalked, check.Condition, "%s: %s", check.Verdict,
			check.Message)
		require.Equal(t, gql.OnboardingVerdictNotKnown, check.Verdict, check.Message)
		require.Contains(t, check.Remedy, "upgrade")
	}
}

// requireReady requires a kept check in which each condition has passed, and upgrade, rollback and deletion by
// operations.
func requireReady(t *testing.T, ctx context.Context, app, version string) {
	t.Helper()
	kept, err := gql.CheckAppOnboarding(ctx, shared.Operator, gql.CheckAppOnboardingInput{AppSlug: app,
		Version: version, Reason: "end-to-end test"})
	require.NoError(t, err)
	for _, check := range kept.CheckAppOnboarding.Checks {
		require.Equal(t, gql.OnboardingVerdictPassed, check.Verdict, "%s: %s %+v", check.Condition, check.Message,
			check.Evidence)
		require.NotEmpty(t, check.Evidence, check.Condition)
		if check.Condition != gql.OnboardingConditionLifecycleWalked {
			continue
		}
		for _, one := range check.Evidence {
			require.True(t, strings.HasPrefix(*one.Id, "op_"), "%s rests on what was done: %s", one.What, *one.Id)
		}
	}
	require.True(t, kept.CheckAppOnboarding.Passed)
}
