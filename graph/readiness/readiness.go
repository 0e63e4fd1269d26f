// Package readiness translates GraphQL to the verbs on onboarding and the gap log. The root's resolvers embed its own.
package readiness

import (
	"context"

	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/gap"
	"github.com/gpuaas/app-platform/service/onboarding"
)

// Verbs resolves the mutations.
type Verbs struct {
	// Checks are the checks of onboarding, and Log is the gap log.
	Checks *onboarding.Service
	Log    *gap.Service
}

// CheckAppOnboarding resolves checkAppOnboarding.
func (v Verbs) CheckAppOnboarding(ctx context.Context, input onboarding.CheckInput) (*onboarding.Record, error) {
	return v.Checks.Check(ctx, input)
}

// RaiseGap resolves raiseGap.
func (v Verbs) RaiseGap(ctx context.Context, input gap.RaiseInput) (*gap.Gap, error) {
	return v.Log.Raise(ctx, input)
}

// DecideGap resolves decideGap.
func (v Verbs) DecideGap(ctx context.Context, input gap.DecideInput) (*gap.Gap, error) {
	return v.Log.Decide(ctx, input)
}

// CloseGap resolves closeGap.
func (v Verbs) CloseGap(ctx context.Context, input gap.CloseInput) (*gap.Gap, error) {
	return v.Log.Close(ctx, input)
}

// Lookups resolves the queries.
type Lookups struct {
	// Checks are the checks of onboarding, and Log is the gap log.
	Checks *onboarding.Service
	Log    *gap.Service
}

// AppOnboarding resolves appOnboarding.
func (r Lookups) AppOnboarding(ctx context.Context, appSlug string, version *string) (*onboarding.Report, error) {
	return r.Checks.Read(ctx, appSlug, read.Value(version))
}

// Gaps resolves gaps.
func (r Lookups) Gaps(ctx context.Context, filter *gap.Filter, first *int,
	after *string) (*model.GapConnection, error) {
	return read.ListOf[model.GapConnection](ctx, filter, first, after, r.Log.List)
}
