// Package trust is whose word counts for an app's versions: runners, the terms of steps, and what was brought and
// taken.
package trust

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbrunner "github.com/gpuaas/app-platform/ent/generated/db/evidencerunner"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Service holds the verbs.
type Service struct{ DB *tx.DB }

// maxRunners bounds the runners that count.
const maxRunners = 100

// RunnerInput is a runner with its public key: Ed25519, 32 bytes in base64.
type RunnerInput struct{ Name, PublicKey, Reason string }

// RegisterRunner registers a runner: reports that it signs count from now on. Key: runner.manage on the platform.
// Faults: INVALID_ARGUMENT naming the field, CONFLICT when the name or the key is registered, LIMIT_EXCEEDED.
func (s *Service) RegisterRunner(ctx context.Context, in RunnerInput) (out *db.EvidenceRunner, err error) {
	var input check.Input
	input.Slug("input.name", in.Name)
	input.Text("input.reason", in.Reason, 1, check.MaxReason)
	key, err := evidence.PublicKey(in.PublicKey)
	if err != nil {
		input.Bad("input.publicKey", "%s", err.Error())
	}
	in.PublicKey = base64.StdEncoding.EncodeToString(key) // one spelling, so that the unique index compares keys
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "registerRunner"
		if err := audit.Require(t, action, authz.RunnerManage, authz.Object{}, ""); err != nil {
			return err
		}
		count, err := t.EvidenceRunner.Query().Where(dbrunner.RevokedAtIsNil()).Count(ctx)
		if err != nil {
			return fmt.Errorf("count the runners: %w", err)
		}
		if count >= maxRunners {
			return fault.New(fault.LimitExceeded, "there may be at most %d runners: revoke one first", maxRunners)
		}
		known, err := t.EvidenceRunner.Query().Select(dbrunner.FieldPublicKey).Strings(ctx)
		if err != nil {
			return fmt.Errorf("read the runners' keys: %w", err)
		}
		if slices.ContainsFunc(known, func(text string) bool { return same(text, key) }) {
			return exists()
		}
		out, err = t.EvidenceRunner.Create().SetID(ids.New(ids.Runner)).SetName(in.Name).SetPublicKey(in.PublicKey).
			SetCreatedBy(string(t.Actor.ID)).SetCreatedAt(t.Now).Save(ctx)
		if tx.Violates(err, "evidence_runner_name_key") || tx.Violates(err, "evidence_runner_public_key_key") {
			return exists()
		}
		if err != nil {
			return fmt.Errorf("register a runner: %w", err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.RunnerManage, ObjectID: out.ID,
			Reason: in.Reason, After: map[string]any{"name": in.Name, "publicKey": in.PublicKey}})
	})
	return out, err
}

// same reports whether a stored text is of the key. Rows of older builds may have it in another spelling of its base64,
// which the unique index takes for another key.
func same(text string, key ed25519.PublicKey) bool {
	stored, err := evidence.PublicKey(text)
	return err == nil && stored.Equal(key)
}

func exists() error {
	return fault.New(fault.Conflict, "a runner with this name or key exists already: a revoked one keeps both").
		At("input.name").Retry(false)
}

// RevokeRunner ends a runner: no report that it signed counts any more. Key: runner.manage on the platform. Faults:
// INVALID_ARGUMENT at reason, NOT_FOUND.
func (s *Service) RevokeRunner(ctx context.Context, id ids.ID, reason string) (out *db.EvidenceRunner, err error) {
	var input check.Input
	input.Text("reason", reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "revokeRunner"
		if err := audit.Require(t, action, authz.RunnerManage, authz.Object{}, id); err != nil {
			return err
		}
		row, err := t.EvidenceRunner.Query().Where(dbrunner.ID(id)).ForUpdate().Only(ctx)
		if db.IsNotFound(err) {
			return fault.NoSuch()
		}
		if err != nil || row.RevokedAt != nil {
			out = row
			return err
		}
		if out, err = row.Update().SetRevokedAt(t.Now).SetRevokeReason(reason).Save(ctx); err != nil {
			return fmt.Errorf("revoke runner %s: %w", id, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.RunnerManage, ObjectID: id, Reason: reason,
			Before: map[string]any{"revoked": false}, After: map[string]any{"revoked": true, "name": row.Name}})
	})
	return out, err
}

// Runners lists the runners, revoked ones too, by name. Key: manifest.read anywhere.
func (s *Service) Runners(ctx context.Context) (out []*db.EvidenceRunner, err error) {
	actor, err := s.DB.Read(ctx, tx.Rows(&out, rows.EvidenceRunner, `SELECT `+rows.EvidenceRunnerColumns+`
		FROM evidence_runner ORDER BY name LIMIT $1`, 10*maxRunners))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireAnywhere(actor, authz.ManifestRead); err != nil {
		return nil, err
	}
	return out, nil
}

// SignedBy returns the runner whose signature a report has; empty for an unsigned one. SIGNATURE_UNTRUSTED at
// input.signature when no registered runner signed it.
func SignedBy(ctx context.Context, t *tx.Tx, kind lifecycle.EvidenceKind, digest, signature string) (ids.ID, error) {
	if signature == "" {
		return "", nil
	}
	runners, err := t.EvidenceRunner.Query().Where(dbrunner.RevokedAtIsNil()).All(ctx)
	if err != nil {
		return "", fmt.Errorf("load the runners: %w", err)
	}
	statement := evidence.Statement(kind, digest)
	for _, one := range runners {
		if key, err := evidence.PublicKey(one.PublicKey); err == nil && evidence.Signed(key, statement, signature) {
			return one.ID, nil
		}
	}
	return "", fault.New(fault.SignatureUntrusted,
		"no registered runner made this signature of the kind and the digest").
		At("input.signature").Retry(false)
}
