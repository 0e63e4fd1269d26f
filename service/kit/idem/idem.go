// Package idem makes a repeated call harmless: the first use of a key is stored with its result, a repeat with the same
// input gets that answer again, and one with another input is refused.
package idem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// MaxKey is the longest key, in bytes.
const MaxKey = 128

// Key is a use of an idempotency key: one caller, one verb, one scope.
type Key struct {
	Verb                string
	TenantID, ProjectID ids.ID // both empty for the platform's own verbs
	Value               string
	// Input is the verb's whole input; it is hashed, not stored.
	Input any
}

// Claim stores the key with result, what the call is about to create, and returns false. If the key was used before, it
// fills result with what that call created and returns true; the call must then write nothing. Two calls at once: the
// second waits for the first. INVALID_ARGUMENT at input.idempotencyKey when the key is malformed;
// IDEMPOTENCY_KEY_REUSED when it was used with other input.
func Claim(ctx context.Context, t *tx.Tx, key Key, result any) (repeated bool, err error) {
	if err := check(key.Value); err != nil {
		return false, err
	}
	digest, err := digestOf(key.Input)
	if err != nil {
		return false, err
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return false, fmt.Errorf("encode the result: %w", err)
	}
	id := rowID(t, key)
	tag, err := t.Exec(ctx, `INSERT INTO idempotency (id, input_digest, result, tenant_id, project_id, created_at)
		VALUES ($1, $2, $3, nullif($4, ''), nullif($5, ''), $6) ON CONFLICT (id) DO NOTHING`,
		id, digest, encoded, key.TenantID, key.ProjectID, t.Now)
	if tx.OutOfReach(err) { // the project was deleted, or a role taken away, since the verb loaded what it is about
		return false, fault.NoSuch().Because(err)
	}
	if err != nil {
		return false, fmt.Errorf("claim an idempotency key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return false, nil
	}
	return true, recall(ctx, t, id, key.Input, result)
}

// recall reads what the key's first use created.
func recall(ctx context.Context, t *tx.Tx, id string, input, result any) error {
	var stored, known []byte
	err := t.QueryRow(ctx, `SELECT input_digest, result FROM idempotency WHERE id = $1`, id).Scan(&known, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.Conflict, "the same idempotency key is in use by another call").
			At("input.idempotencyKey")
	}
	if err != nil {
		return fmt.Errorf("read an idempotency key: %w", err)
	}
	same, err := sameInput(known, input)
	if err != nil {
		return err
	}
	if !same {
		return fault.New(fault.IdempotencyKeyReused,
			"the idempotency key was used with other input").At("input.idempotencyKey")
	}
	if err := json.Unmarshal(stored, result); err != nil {
		return fmt.Errorf("read an idempotency key: %w", err)
	}
	return nil
}

func check(value string) error {
	if value == "" || len(value) > MaxKey {
		return fault.New(fault.InvalidArgument, "the idempotency key must have 1 to %d characters",
			MaxKey).At("input.idempotencyKey")
	}
	for _, r := range value {
		if r < 0x21 || r > 0x7e {
			return fault.New(fault.InvalidArgument,
				"the idempotency key must be printable ASCII without spaces").At("input.idempotencyKey")
		}
	}
	return nil
}

// digestOf hashes an input without the fields that say nothing: a build that knows one field more, which the caller has
// left out, finds the repeat of a call that a build without it served.
func digestOf(input any) ([]byte, error) {
	encoded, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encode the input: %w", err)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(encoded, &fields) == nil && fields != nil {
		for name, value := range fields {
			if slices.Contains(nothing, string(value)) {
				delete(fields, name)
			}
		}
		if encoded, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("encode the input: %w", err)
		}
	}
	sum := sha256.Sum256(encoded)
	return sum[:], nil
}

// nothing are values of a field that was left out.
var nothing = []string{"null", `""`, "false", "0", "[]", "{}"}

// sameInput reports whether an input is the one that a stored digest is of. Builds before this one hashed every field.
func sameInput(known []byte, input any) (bool, error) {
	digest, err := digestOf(input)
	if err != nil {
		return false, err
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return false, fmt.Errorf("encode the input: %w", err)
	}
	whole := sha256.Sum256(encoded)
	return bytes.Equal(known, digest) || bytes.Equal(known, whole[:]), nil
}

func rowID(t *tx.Tx, key Key) string {
	sum := sha256.New()
	for _, part := range []string{string(t.Actor.Kind), string(t.Actor.ID), string(key.TenantID), string(key.ProjectID),
		key.Verb, key.Value} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Store replaces what a claimed key remembers, for calls whose answer comes after the claim.
func Store(ctx context.Context, t *tx.Tx, key Key, result any) error {
	encoded, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if _, err := t.Exec(ctx, `UPDATE idempotency SET result = $2 WHERE id = $1`, rowID(t, key), encoded); err != nil {
		return fmt.Errorf("store under an idempotency key: %w", err)
	}
	return nil
}
