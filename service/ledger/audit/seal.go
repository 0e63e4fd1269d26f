package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/auditchain"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Bounds of sealing: entries in one transaction; links, and time while there are new ones, between two
// checkpoints.
const (
	maxSealed       = 1_000
	checkpointLinks = 1_000
	checkpointEvery = 5 * time.Minute
)

// Sealer adds committed entries to the hash chain. Two at once do no harm: a place is given once, and what is added
// must follow from the link before it.
type Sealer struct {
	DB   *tx.DB
	Keys *token.Keyring
}

// Sealed is the result of one batch.
type Sealed struct {
	// Entries are how many were sealed.
	Entries int
	// Full says that more may be waiting; Held, that some wait for a transaction that still runs.
	Full, Held bool
	// Lag is how long the oldest entry of the batch had waited.
	Lag time.Duration
}

// Seal seals a batch, in the order of commits, in one transaction.
func (s *Sealer) Seal(ctx context.Context) (out Sealed, err error) {
	err = s.DB.As(ctx, authz.System("sealer"), func(ctx context.Context, t *tx.Tx) error {
		out, err = s.seal(ctx, t)
		return err
	})
	if tx.Violates(err, "audit_link_pkey") || tx.Violates(err, "auditlink_entry_id") || errors.Is(err, errOvertaken) {
		return Sealed{Full: true}, nil // somebody else was faster
	}
	return out, err
}

// errOvertaken says that the link that was to be followed is not the last any more.
var errOvertaken = errors.New("another process extended the chain")

// head is the chain's end: its last link, and the place of that entry in the order of commits.
type head struct {
	seq  int
	link auditchain.Hash
	xid  int64
	id   ids.ID
}

// headSQL reads no place for an entry that was deleted, or where the database was restored elsewhere and numbers its
// transactions from the start again: the sealer then looks at all entries for those that are not sealed.
const headSQL = `SELECT l.seq, l.link, coalesce(e.xid, 0), coalesce(e.id, '')
	FROM audit_link l LEFT JOIN audit_entry e ON e.id = l.entry_id
	AND e.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
	ORDER BY l.seq DESC LIMIT 1`

// waitingSQL are entries that no transaction that still runs could precede. Numbers beyond every transaction's
// are those of a database before this one.
const waitingSQL = `SELECT ` + rows.AuditEntryColumns + ` FROM audit_entry WHERE (xid, id) > ($1, $2)
	AND NOT (xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
	AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
	AND NOT EXISTS (SELECT FROM audit_link l WHERE l.entry_id = audit_entry.id) ORDER BY xid, id LIMIT $3`

func (s *Sealer) seal(ctx context.Context, t *tx.Tx) (Sealed, error) {
	end, link := head{}, []byte(nil)
	err := t.QueryRow(ctx, headSQL).Scan(&end.seq, &link, &end.xid, &end.id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Sealed{}, fmt.Errorf("read the chain's end: %w", err)
	}
	copy(end.link[:], link)
	// Read before the entries that wait: what is held back now is either sealed below or reported in Held.
	var held bool
	err = t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM audit_entry
		WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
		AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)`).Scan(&held)
	if err != nil {
		return Sealed{}, fmt.Errorf("find entries that wait for open transactions: %w", err)
	}
	entries, err := tx.Collect(ctx, t, rows.AuditEntry, waitingSQL, end.xid, end.id, maxSealed)
	if err != nil {
		return Sealed{}, fmt.Errorf("read what is to be sealed: %w", err)
	}
	out := Sealed{Entries: len(entries), Full: len(entries) == maxSealed, Held: held}
	if len(entries) > 0 {
		out.Lag = max(t.Now.Sub(entries[0].CreatedAt), 0)
		if end, err = s.append(ctx, t, end, entries); err != nil {
			return Sealed{}, err
		}
	}
	return out, s.sign(ctx, t, end)
}

// appendSQL adds links if the chain still ends where they begin.
const appendSQL = `INSERT INTO audit_link (seq, entry_id, leaf, link, sealed_at)
	SELECT $1::bigint + n, entry, leaf, link, $5::timestamptz FROM unnest($2::text[], $3::bytea[], $4::bytea[]) WITH
	ORDINALITY AS batch (entry, leaf, link, n)
	WHERE CASE WHEN $1::bigint = 0 THEN NOT EXISTS (SELECT FROM audit_link) ELSE EXISTS (SELECT FROM audit_link
	WHERE seq = $1::bigint AND link = $6::bytea) END`

// append hashes the entries onto the chain and returns its new end.
func (s *Sealer) append(ctx context.Context, t *tx.Tx, end head, entries []*db.AuditEntry) (head, error) {
	named, leaves, links := make([]string, len(entries)), make([][]byte, len(entries)), make([][]byte, len(entries))
	from := end
	for i, entry := range entries {
		canonical, err := form(entry).Canonical()
		if err != nil {
			return head{}, fmt.Errorf("canonical form of %s: %w", entry.ID, err)
		}
		leaf := auditchain.Leaf(canonical)
		end.link = auditchain.Next(end.link, leaf)
		named[i], leaves[i], links[i] = string(entry.ID), leaf[:], append([]byte(nil), end.link[:]...)
	}
	tag, err := t.Exec(ctx, appendSQL, from.seq, named, leaves, links, t.Now, from.link[:])
	if err != nil {
		return head{}, fmt.Errorf("seal %d entries: %w", len(entries), err)
	}
	if tag.RowsAffected() != int64(len(entries)) {
		return head{}, errOvertaken
	}
	end.seq += len(entries)
	return end, nil
}

// sign makes a checkpoint when the last one lies far enough behind.
func (s *Sealer) sign(ctx context.Context, t *tx.Tx, end head) error {
	if end.seq == 0 {
		return nil
	}
	var last int
	var at time.Time
	err := t.QueryRow(ctx, `SELECT seq, created_at FROM audit_checkpoint ORDER BY seq DESC LIMIT 1`).Scan(&last, &at)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the last checkpoint: %w", err)
	}
	if end.seq <= last || (end.seq < last+checkpointLinks && t.Now.Before(at.Add(checkpointEvery))) {
		return nil
	}
	key, keyID := s.Keys.SigningKey()
	signature, err := auditchain.Sign(auditchain.Statement{Issuer: s.Keys.Issuer(), Seq: end.seq,
		Link: end.link.String(), Time: t.Now}, key, keyID)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO audit_checkpoint (id, seq, link, signature, created_at)
		VALUES ($1, $2, $3, $4, $5)`,
		ids.New(ids.AuditCheckpoint), end.seq, end.link[:], signature, t.Now)
	if err != nil {
		return fmt.Errorf("sign link %d: %w", end.seq, err)
	}
	return nil
}
