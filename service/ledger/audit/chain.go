package audit

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/auditchain"
)

// Bounds of what is read of the chain at once.
const (
	maxLinks       = 500
	maxCheckpoints = 100
)

// Link is a link of the hash chain with its entry. Of an entry that was deleted, which can only be tampering, only the
// id is left, and Canonical is empty.
type Link struct {
	Seq        int
	Entry      *db.AuditEntry
	Canonical  string
	Leaf, Link string
	SealedAt   time.Time
}

// Checkpoint is a signed statement of the chain's end at a time.
type Checkpoint struct {
	ID        ids.ID
	Seq       int
	Link      string
	Signature string
	CreatedAt time.Time
}

// form is the entry as the chain hashes it.
func form(x *db.AuditEntry) auditchain.Entry {
	return auditchain.Entry{
		ID: string(x.ID), TenantID: (*string)(x.TenantID), ProjectID: (*string)(x.ProjectID), ActorKind: x.ActorKind,
		ActorID: x.ActorID, ActorName: x.ActorName, PermissionKey: x.PermissionKey, Action: x.Action,
		Allowed:  x.Allowed,
		ObjectID: x.ObjectID, Before: x.Before, After: x.After, Reason: x.Reason, Code: x.Code, Repeats: x.Repeats,
		CorrelationID: x.CorrelationID, Origin: x.Origin, BreakGlass: x.BreakGlass, CreatedAt: x.CreatedAt,
	}
}

// linkSQL reads links with their entries as they are now. The columns of a deleted entry are empty.
const linkSQL = `SELECT l.seq, l.entry_id, l.leaf, l.link, l.sealed_at, e.id IS NOT NULL, e.tenant_id, e.project_id,
	coalesce(e.actor_kind, ''),
	coalesce(e.actor_id, ''), coalesce(e.actor_name, ''), coalesce(e.permission_key, ''), coalesce(e.action, ''),
	coalesce(e.allowed, false),
	coalesce(e.object_id, ''), e.before, e.after, coalesce(e.reason, ''), coalesce(e.code, ''), coalesce(e.repeats, 0),
	coalesce(e.correlation_id, ''), coalesce(e.origin, ''), coalesce(e.created_at, 'epoch'), coalesce(e.break_glass, false),
	coalesce(e.trace_id, ''), e.instance_id, coalesce(e.app_slug, '')
	FROM audit_link l LEFT JOIN audit_entry e ON e.id = l.entry_id WHERE l.seq > $1 ORDER BY l.seq LIMIT $2`

func scanLink(row pgx.CollectableRow) (*Link, error) {
	x, l, there := new(db.AuditEntry), new(Link), false
	var leaf, link []byte
	err := row.Scan(&l.Seq, &x.ID, &leaf, &link, &l.SealedAt, &there, &x.TenantID, &x.ProjectID, &x.ActorKind,
		&x.ActorID, &x.ActorName,
		&x.PermissionKey, &x.Action, &x.Allowed, &x.ObjectID, &x.Before, &x.After, &x.Reason, &x.Code, &x.Repeats,
		&x.CorrelationID,
		&x.Origin, &x.CreatedAt, &x.BreakGlass, &x.TraceID, &x.InstanceID, &x.AppSlug)
	if err != nil {
		return nil, err
	}
	l.Entry, l.Leaf, l.Link = x, hex.EncodeToString(leaf), hex.EncodeToString(link)
	if !there {
		return l, nil
	}
	canonical, err := form(x).Canonical()
	if err != nil {
		return nil, fmt.Errorf("canonical form of %s: %w", x.ID, err)
	}
	l.Canonical = string(canonical)
	return l, nil
}

// Chain reads the links after a place, in order, at most first of them. Key: audit.verify on the platform.
// INVALID_ARGUMENT at afterSeq and first.
func Chain(ctx context.Context, d *tx.DB, after, first int) ([]*Link, error) {
	if first < 1 || first > maxLinks {
		return nil, fault.New(fault.InvalidArgument, "first must be 1 to %d", maxLinks).At("first")
	}
	var found []*Link
	return found, readChain(ctx, d, after, tx.Rows(&found, scanLink, linkSQL, after, first))
}

// Checkpoints reads the signed checkpoints after a place, oldest first, at most 100. Key: audit.verify on
// the platform. INVALID_ARGUMENT at afterSeq.
func Checkpoints(ctx context.Context, d *tx.DB, after int) ([]*Checkpoint, error) {
	var found []*Checkpoint
	return found, readChain(ctx, d, after, tx.Rows(&found, func(row pgx.CollectableRow) (*Checkpoint, error) {
		x, link := new(Checkpoint), []byte(nil)
		err := row.Scan(&x.ID, &x.Seq, &link, &x.Signature, &x.CreatedAt)
		x.Link = hex.EncodeToString(link)
		return x, err
	}, `SELECT id, seq, link, signature, created_at FROM audit_checkpoint WHERE seq > $1 ORDER BY seq LIMIT $2`, after,
		maxCheckpoints))
}

func readChain(ctx context.Context, d *tx.DB, after int, query tx.Query) error {
	if after < 0 {
		return fault.New(fault.InvalidArgument, "afterSeq must not be negative").At("afterSeq")
	}
	actor, err := d.Read(ctx, query)
	if err != nil {
		return err
	}
	return authz.Require(actor, authz.AuditVerify, "", "")
}
