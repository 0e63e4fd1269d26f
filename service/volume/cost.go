package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/spend"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// affordable refuses a volume that was just written when its cost exceeds policy or budgets: POLICY_DENIED and
// BUDGET_EXCEEDED at input.sizeGiB. Policy bounds the hourly cost of everything in the project, with its volumes.
func affordable(ctx context.Context, t *tx.Tx, rules *policy.Effective, tenant, project ids.ID) error {
	const path = "input.sizeGiB"
	if rules.Counts() {
		usage, err := overlay.Count(ctx, t, project, "", false)
		if err != nil {
			return err
		}
		if err := rules.HourlyCost(usage.Spending, path); err != nil {
			return err
		}
	}
	return spend.Admit(ctx, t, spend.Ask{TenantID: tenant, ProjectID: project, Lock: true, Path: path})
}

// Plan is what creating or growing a volume would do.
type Plan struct {
	// Volume is how it would be.
	Volume *Volume
	// Before is what an hour of it costs now, and After what it would cost. Both are nil where its class has no price,
	// and Before also where the volume does not exist yet.
	Before, After *tariff.Hourly
}

// errPlanned rolls back the transaction of a plan.
var errPlanned = errors.New("only a plan")

// PlanCreate shows what Create would do: it does the same and rolls it back. Key and faults are those of Create.
func (s *Service) PlanCreate(ctx context.Context, in CreateInput) (*Plan, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &Plan{}
	return out.of(s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		project, where, err := in.locate(ctx, t, "planCreateVolume")
		if err != nil {
			return err
		}
		made := ids.New(ids.Volume)
		if err := in.write(ctx, t, project, made); err != nil {
			return err
		}
		if out.Volume, err = one(ctx, t, made); err != nil {
			return err
		}
		if out.After, err = hourly(ctx, t, where, out.Volume.StorageClass.Name, in.SizeGiB); err != nil {
			return err
		}
		return errPlanned
	}))
}

// PlanResize shows what Resize would do: it does the same and rolls it back. Key and faults are those of Resize.
func (s *Service) PlanResize(ctx context.Context, in ResizeInput) (*Plan, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &Plan{}
	return out.of(s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		before, err := one(ctx, t, in.VolumeID)
		if err == nil {
			out.Volume, err = in.resize(ctx, t)
		}
		if err != nil {
			return err
		}
		class := out.Volume.StorageClass.Name
		if out.Before, err = hourly(ctx, t, before.object(), class, before.SizeGiB); err != nil {
			return err
		}
		if out.After, err = hourly(ctx, t, before.object(), class, in.SizeGiB); err != nil {
			return err
		}
		return errPlanned
	}))
}

// of returns the plan when its transaction was rolled back by errPlanned.
func (p *Plan) of(err error) (*Plan, error) {
	if errors.Is(err, errPlanned) {
		return p, nil
	}
	return nil, err
}

// hourly is what an hour of a volume costs by the price book now; nil when its class has no price.
func hourly(ctx context.Context, t *tx.Tx, of authz.Object, class string, gib int) (*tariff.Hourly, error) {
	found, err := tx.Collect(ctx, t, scanHourly, `SELECT '', price_currency, price_hourly
		FROM platform.volume_hourly_now($1, $2,
		platform.billing_currency($1), 1, $3, $4)`, of.TenantID, of.ProjectID, gib, class)
	if err != nil {
		return nil, fmt.Errorf("read what a volume of %s costs: %w", class, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0].Hourly, nil
}

// ListPrices reads what an hour of a volume of one GiB costs by the platform's own prices now, of storage classes: one
// amount a currency, in the order of currencies. It leaves out a class without a price. Any logged-in caller may.
func (s *Service) ListPrices(ctx context.Context, classes []ids.ID) (map[ids.ID][]*tariff.Hourly, error) {
	var found []costing
	_, err := s.DB.Read(ctx, tx.Rows(&found, scanHourly, `SELECT c.id, h.price_currency, h.price_hourly
		FROM storage_class c
		CROSS JOIN (SELECT DISTINCT v.currency FROM price_version v WHERE v.tenant_id IS NULL AND v.superseded_xid IS NULL
			AND v.meter = 'volume_gib_seconds') known
		CROSS JOIN LATERAL platform.volume_hourly_now(NULL, NULL, known.currency, 1, 1, c.name) h
		WHERE c.id = ANY ($1) ORDER BY c.id, h.price_currency`, classes))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*tariff.Hourly, len(classes))
	for i := range found {
		out[found[i].of] = append(out[found[i].of], &found[i].Hourly)
	}
	return out, nil
}

// costing is what an hour of a volume, or of a storage class, costs.
type costing struct {
	of ids.ID
	tariff.Hourly
}

func scanHourly(row pgx.CollectableRow) (c costing, err error) {
	err = row.Scan(&c.of, &c.Currency, &c.Amount)
	return c, err
}

// Hourly reads what an hour of volumes costs by the price book now. It leaves out volumes that are deleted or lost, or
// have no price.
func (s *Service) Hourly(ctx context.Context, volumes []ids.ID) (map[ids.ID]*tariff.Hourly, error) {
	var found []costing
	_, err := s.DB.Read(ctx, tx.Rows(&found, scanHourly, `SELECT v.id, h.price_currency, h.price_hourly FROM volume v
		JOIN storage_class c ON c.id = v.storage_class_id CROSS JOIN LATERAL platform.volume_hourly_now(v.tenant_id, v.project_id,
			platform.billing_currency(v.tenant_id), 1, v.size_gib, c.name) h
		WHERE v.id = ANY ($1) AND v.deleted_at IS NULL AND v.lost_at IS NULL`, volumes))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]*tariff.Hourly, len(found))
	for i := range found {
		out[found[i].of] = &found[i].Hourly
	}
	return out, nil
}
