package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	ledger "github.com/gpuaas/app-platform/service/ledger/usage"
)

// ReportRecord is a record that an adapter reports.
type ReportRecord struct {
	ID, Dimension, Quantity string
	From, To                time.Time
	MemberID                *ids.ID
	Session, Retracts       *string
}

// ReportInput is usage that an adapter reports.
type ReportInput struct {
	InstanceID ids.ID
	Records    []*ReportRecord
}

// Report is what became of it.
type Report struct {
	Recorded, Known, Quarantined int
}

// Report records usage that an adapter reports. It requires usage.report on the instance. A repeated report is the same
// records, so that it needs no idempotency key.
//
// Faults: INVALID_ARGUMENT with a reason for each record that is wrong, and nothing is recorded then; NOT_FOUND,
// FORBIDDEN.
func (s *Service) Report(ctx context.Context, in ReportInput) (*Report, error) {
	if len(in.Records) < 1 || len(in.Records) > metering.MaxBatch {
		return nil, fault.New(fault.InvalidArgument, "report 1 to %d records at once", metering.MaxBatch).
			At("input.records")
	}
	var out *Report
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "reportUsage"
		instance, err := s.dimensions.Load(ctx, t, in.InstanceID)
		if err != nil {
			return err
		}
		if instance == nil {
			return audit.Missing(t, action, authz.UsageReport, in.InstanceID)
		}
		where := authz.Object{TenantID: ids.ID(instance.TenantID), ProjectID: ids.ID(instance.ProjectID),
			InstanceID: in.InstanceID}
		if err := audit.Require(t, action, authz.UsageReport, where, in.InstanceID); err != nil {
			return err
		}
		incoming, err := in.incoming(instance, t.Now)
		if err != nil {
			return err
		}
		taken, err := ledger.Take(ctx, t, instance, incoming)
		if err != nil {
			return err
		}
		out = &Report{Recorded: taken.Recorded, Known: taken.Known, Quarantined: taken.Quarantined}
		return nil
	})
	return out, err
}

// incoming returns the records for the ledger, or a refusal with a reason for each record that is wrong.
func (in *ReportInput) incoming(instance *metering.Metering, now time.Time) ([]ledger.Incoming, error) {
	out := make([]ledger.Incoming, len(in.Records))
	var reasons []fault.Reason
	for i, one := range in.Records {
		out[i].Sent = one.sent()
		if _, wrong := instance.Record(&out[i].Sent, now); wrong != nil {
			wrong.Path = fmt.Sprintf("input.records.%d.%s", i, wrong.Path)
			reasons = append(reasons, *wrong)
			continue
		}
		raw, err := json.Marshal(out[i].Sent)
		if err != nil {
			return nil, fmt.Errorf("encode a usage record: %w", err)
		}
		out[i].Raw = raw
	}
	if len(reasons) == 0 {
		return out, nil
	}
	refused := fault.New(fault.InvalidArgument, "%d of %d records are refused, so that none is recorded", len(reasons),
		len(out))
	for _, reason := range reasons[:min(len(reasons), maxReasons)] {
		refused = refused.With(reason)
	}
	return nil, refused
}

// maxReasons bounds the reasons of one refusal.
const maxReasons = 50

// sent returns the record in the form of a page of an adapter's usage.
func (r *ReportRecord) sent() metering.Sent {
	out := metering.Sent{ID: r.ID, Dimension: r.Dimension, Quantity: r.Quantity, From: r.From, To: r.To}
	if r.MemberID != nil {
		out.MemberID = string(*r.MemberID)
	}
	if r.Session != nil {
		out.Session = *r.Session
	}
	if r.Retracts != nil {
		out.Retracts = *r.Retracts
	}
	return out
}
