package trust

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// TermsInput are an app's terms.
type TermsInput struct {
	AppSlug                             string
	MinLaunches, MinMinutes, GraceHours int
	SecondApprover, SmokedArtifacts     bool
	RequireOnboarding                   bool
	Reason                              string
}

func (in TermsInput) check() error {
	var input check.Input
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	for _, one := range []struct {
		path       string
		value, max int
	}{
		{"input.minLaunches", in.MinLaunches, rollout.MaxLaunches},
		{"input.minMinutes", in.MinMinutes, rollout.MaxMinutes},
		{"input.graceHours", in.GraceHours, rollout.MaxHours},
	} {
		if one.value < 0 || one.value > one.max {
			input.Bad(one.path, "must be 0 to %d", one.max)
		}
	}
	return input.Err()
}

// SetTerms sets what the steps of an app's versions need. Key: app.manage on the platform. Faults: INVALID_ARGUMENT
// naming the field, FORBIDDEN, NOT_FOUND.
func (s *Service) SetTerms(ctx context.Context, in TermsInput) (out *db.App, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	wanted := rollout.Terms{
		MinLaunches: in.MinLaunches, MinMinutes: in.MinMinutes, GraceHours: in.GraceHours,
		SecondApprover:  in.SecondApprover,
		SmokedArtifacts: in.SmokedArtifacts, RequireOnboarding: in.RequireOnboarding,
	}
	encoded, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("encode the terms: %w", err)
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "setPromotionTerms"
		if err := audit.Require(t, action, authz.AppManage, authz.Object{}, ids.ID("")); err != nil {
			return err
		}
		row, err := t.App.Query().Where(dbapp.Slug(in.AppSlug)).ForUpdate().Only(ctx)
		if db.IsNotFound(err) {
			return fault.New(fault.NotFound, "there is no app %q", in.AppSlug).At("input.appSlug")
		}
		if err != nil {
			return fmt.Errorf("load app %s: %w", in.AppSlug, err)
		}
		if out, err = row.Update().SetPromotionTerms(encoded).Save(ctx); err != nil {
			return fmt.Errorf("set the terms of app %s: %w", in.AppSlug, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.AppManage, ObjectID: row.ID,
			Reason: in.Reason, Before: map[string]any{"terms": json.RawMessage(row.PromotionTerms)},
			After: map[string]any{"app": in.AppSlug, "terms": wanted}})
	})
	return out, err
}
