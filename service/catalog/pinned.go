package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

// maxNamed bounds the objects that a refusal names.
const maxNamed = 10

// pinned is an artifact that a manifest pins.
type pinned struct {
	trust.Pin
	Quarantined bool
	Why         string
}

func scanPinned(row pgx.CollectableRow) (pinned, error) {
	var h pinned
	return h, row.Scan(&h.Name, &h.Digest, (*string)(&h.Stage), &h.Quarantined, &h.Why)
}

// lacks is what keeps a manifest that pins these artifacts from a stage.
func lacks(artifacts []pinned, to lifecycle.Stage) (found []fault.Reason) {
	add := func(code fault.Code, format string, args ...any) {
		found = append(found, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: "input.to"})
	}
	for _, one := range artifacts {
		switch {
		case one.Quarantined:
			add(fault.ArtifactQuarantined, "artifact %s (%s) is in quarantine: %s", one.Name, one.Digest, one.Why)
		case one.Stage == lifecycle.StageRetired, to == lifecycle.StageActive && one.Stage != lifecycle.StageActive:
			add(fault.FailedPrecondition, "artifact %s (%s) is %s", one.Name, one.Digest, one.Stage)
		}
	}
	return found
}

// sound refuses a step that the manifest's artifacts do not bear. They are locked against a step of their own until the
// commit.
func sound(ctx context.Context, t *tx.Tx, row *db.Manifest, to lifecycle.Stage) error {
	switch to {
	case lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive:
	default:
		return nil
	}
	if row.Stage == lifecycle.StageCanary && to == lifecycle.StageStaged {
		return nil // a canary goes back whatever has become of its artifacts
	}
	found, err := t.Query(ctx, `SELECT name, digest, stage, quarantined, why FROM platform.hold_artifacts($1)`, row.ID)
	if err != nil {
		return fmt.Errorf("load the artifacts of %s: %w", row.ID, err)
	}
	artifacts, err := pgx.CollectRows(found, scanPinned)
	if err != nil {
		return fmt.Errorf("load the artifacts of %s: %w", row.ID, err)
	}
	return refusal(lacks(artifacts, to), to)
}

// refusal is a step's refusal for these reasons; nil for none. The gravest code is the refusal's.
func refusal(reasons []fault.Reason, to lifecycle.Stage) error {
	if len(reasons) == 0 {
		return nil
	}
	code, text := fault.FailedPrecondition, "a version that is "+string(to)+" must not pin a retired artifact"
	if to == lifecycle.StageActive {
		text = "an active version must pin active artifacts only"
	}
	for _, reason := range reasons {
		if reason.Code == fault.ArtifactQuarantined {
			code, text = reason.Code, "the version pins an artifact that is in quarantine"
		}
	}
	return fault.New(code, "%s", text).With(reasons...)
}

// unused refuses to retire what a live instance uses, naming up to 10 of those that the caller sees and counting the
// others.
func unused(ctx context.Context, t *tx.Tx, row *db.Manifest) error {
	var users int
	if err := t.QueryRow(ctx, `SELECT platform.users_of_manifest($1)`, row.ID).Scan(&users); err != nil {
		return fmt.Errorf("find instances of %s: %w", row.ID, err)
	}
	if users == 0 {
		return nil
	}
	found, err := t.Query(ctx, `SELECT id || ' (' || name || ')' FROM instance WHERE manifest_id = $1
		AND released_at IS NULL ORDER BY id LIMIT $2`, row.ID, maxNamed)
	if err != nil {
		return fmt.Errorf("find instances of %s: %w", row.ID, err)
	}
	live, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find instances of %s: %w", row.ID, err)
	}
	refused := fault.New(fault.FailedPrecondition, "version %s is used by %d live instances", row.Version, users)
	for _, instance := range live {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition, Message: "live: " + instance,
			Path: "input.to"})
	}
	if others := users - len(live); others > 0 {
		refused = refused.With(fault.Reason{Code: fault.FailedPrecondition,
			Message: fmt.Sprintf("live: %d more", others), Path: "input.to"})
	}
	return refused
}
