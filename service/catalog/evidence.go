package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/catalog/described"
)

// staged is why a manifest was staged.
type staged struct {
	Lint    lintEvidence     `json:"lint"`
	Smoke   smokeEvidence    `json:"smoke"`
	Adapter adapterEvidence  `json:"adapter"`
	Reports []reportEvidence `json:"reports,omitempty"`
}

type lintEvidence struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

type smokeEvidence struct {
	InstanceID   ids.ID    `json:"instanceId"`
	Create       ids.ID    `json:"createOperationId"`
	Decommission ids.ID    `json:"decommissionOperationId"`
	ReleasedAt   time.Time `json:"releasedAt"`
}

type adapterEvidence struct {
	Name        string     `json:"name"`
	Build       string     `json:"build"`
	DescribedAt *time.Time `json:"describedAt"`
}

type reportEvidence struct {
	ID     ids.ID                 `json:"id"`
	Kind   lifecycle.EvidenceKind `json:"kind"`
	Digest string                 `json:"digest"`
}

// prove gathers everything that staging requires. The artifacts have been checked before.
func prove(ctx context.Context, t *tx.Tx, row *db.Manifest, smoke *ids.ID) (json.RawMessage, error) {
	parsed, err := manifest.New(row.Document)
	if err != nil {
		return nil, err
	}
	world, err := worldOf(ctx, t, parsed)
	if err != nil {
		return nil, err
	}
	if reasons := world.named(parsed); len(reasons) > 0 {
		return nil, fault.New(fault.ManifestInvalid, "the manifest does not fit the catalog any more").With(reasons...)
	}
	out := staged{Lint: lintEvidence{Digest: row.Digest, At: t.Now}}
	if out.Adapter, err = snapshot(ctx, t, parsed); err != nil {
		return nil, err
	}
	if out.Smoke, err = smoked(ctx, t, row, smoke); err != nil {
		return nil, err
	}
	if out.Reports, err = reported(ctx, t, row, parsed, out.Adapter.Build); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the evidence: %w", err)
	}
	return encoded, nil
}

// smoked proves that the instance ran this very manifest as a smoke launch and that its teardown
// was proved, not forced.
func smoked(ctx context.Context, t *tx.Tx, row *db.Manifest, id *ids.ID) (smokeEvidence, error) {
	missing := fault.New(fault.EvidenceMissing,
		"STAGED needs a smoke instance that ran this version and was torn down with proof")
	if id == nil {
		return smokeEvidence{}, missing.With(fault.Reason{Code: fault.Required, Message: "name the smoke instance",
			Path: "input.smokeInstanceId"})
	}
	out := smokeEvidence{InstanceID: *id}
	var smoke bool
	var of ids.ID
	var released *time.Time
	var create, decommission *ids.ID
	err := t.QueryRow(ctx, `SELECT i.smoke, i.manifest_id, i.released_at,
		(SELECT o.id FROM operation o WHERE o.instance_id = i.id AND o.kind = 'INSTANCE_CREATE' AND o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL' LIMIT 1),
		(SELECT o.id FROM operation o WHERE o.instance_id = i.id AND o.kind = 'INSTANCE_DECOMMISSION' AND o.state = 'SUCCEEDED' AND coalesce(o.outcome, 'NORMAL') = 'NORMAL' LIMIT 1)
		FROM instance i WHERE i.id = $1`, *id).Scan(&smoke, &of, &released, &create, &decommission)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return smokeEvidence{}, fmt.Errorf("load smoke instance %s: %w", *id, err)
	}
	for _, need := range []struct {
		met  bool
		text string
	}{
		{err == nil, "the instance does not exist"},
		{of == row.ID, "the instance was not launched from this version"},
		{smoke, "the instance was not a smoke launch"},
		{create != nil, "the instance's launch did not succeed"},
		{decommission != nil && released != nil, "the instance's teardown has not been proved"},
	} {
		if !need.met {
			return smokeEvidence{}, missing.With(fault.Reason{Code: fault.EvidenceMissing, Message: need.text,
				Path: "input.smokeInstanceId"})
		}
	}
	out.Create, out.Decommission, out.ReleasedAt = *create, *decommission, *released
	return out, nil
}

// snapshot checks the manifest against the last description of its adapter. From then on the manifest counts: a live
// adapter cannot widen itself.
func snapshot(ctx context.Context, t *tx.Tx, m *manifest.Manifest) (adapterEvidence, error) {
	row, err := t.Adapter.Query().Where(dbadapter.Name(m.Adapter)).Only(ctx)
	if err != nil {
		return adapterEvidence{}, fmt.Errorf("load adapter %s: %w", m.Adapter, err)
	}
	if len(row.Description) == 0 {
		return adapterEvidence{}, fault.New(fault.FailedPrecondition, "adapter %q has never described itself: %s",
			m.Adapter, row.LastError)
	}
	var said described.Description
	if err := json.Unmarshal(row.Description, &said); err != nil {
		return adapterEvidence{}, fault.New(fault.AdapterInvalid, "the description of adapter %q cannot be read",
			m.Adapter).Because(err)
	}
	if reasons := said.Findings(m); len(reasons) > 0 {
		return adapterEvidence{}, fault.New(fault.ManifestInvalid, "the manifest goes beyond what adapter %q describes",
			m.Adapter).With(reasons...)
	}
	return adapterEvidence{Name: row.Name, Build: said.Build, DescribedAt: row.LastSeenAt}, nil
}
