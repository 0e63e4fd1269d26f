package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/auditchain"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// sealed is a platform with a sealer and n audited changes.
type sealed struct {
	*platformtest.Kit
	t      *testing.T
	sealer *audit.Sealer
}

func newSealed(t *testing.T, n int) *sealed {
	t.Helper()
	kit := platformtest.New(t)
	s := &sealed{Kit: kit, t: t, sealer: &audit.Sealer{DB: kit.DB, Keys: kit.Ring}}
	s.write(n)
	s.free()
	return s
}

// free waits until no transaction holds back what was written; those of the server's other databases do so too.
func (s *sealed) free() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		return s.Count("audit_entry", "xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint") == 0
	}, patience, tick)
}

func (s *sealed) write(n int) {
	s.t.Helper()
	operator := s.As(s.Operator())
	for i := range n {
		require.NoError(s.t, s.DB.Write(operator, func(ctx context.Context, t *tx.Tx) error {
			return audit.Write(ctx, t, audit.Entry{Action: "test", Key: authz.AuditVerify,
				ObjectID: ids.New(ids.Instance), Reason: fmt.Sprint("reason ", i),
				After: map[string]any{"n": i, "share": 0.25, "who": "Ünal <&> \u2028"}, BreakGlass: i%3 == 0})
		}))
	}
}

// seal seals everything.
func (s *sealed) seal() {
	s.t.Helper()
	for {
		out, err := s.sealer.Seal(s.t.Context())
		require.NoError(s.t, err)
		if !out.Full && !out.Held {
			return
		}
	}
}

// chain reads the whole chain as an operator does, as links of the public form.
func (s *sealed) chain() []auditchain.Link {
	s.t.Helper()
	operator, after, all := s.As(s.Operator()), 0, []auditchain.Link(nil)
	for {
		page, err := audit.Chain(operator, s.DB, after, 500)
		require.NoError(s.t, err)
		for _, link := range page {
			all = append(all, public(link))
			after = link.Seq
		}
		if len(page) == 0 {
			return all
		}
	}
}

func public(l *audit.Link) auditchain.Link {
	e := l.Entry
	return auditchain.Link{Seq: l.Seq, Canonical: l.Canonical, Leaf: l.Leaf, Link: l.Link, SealedAt: l.SealedAt,
		Entry: auditchain.Entry{
			ID: string(e.ID), TenantID: (*string)(e.TenantID), ProjectID: (*string)(e.ProjectID),
			ActorKind: e.ActorKind, ActorID: e.ActorID,
			ActorName: e.ActorName, PermissionKey: e.PermissionKey, Action: e.Action, Allowed: e.Allowed,
			ObjectID: e.ObjectID, Before: e.Before,
			After: e.After, Reason: e.Reason, Code: e.Code, Repeats: e.Repeats, CorrelationID: e.CorrelationID,
			Origin:     e.Origin,
			BreakGlass: e.BreakGlass, CreatedAt: e.CreatedAt}}
}

// verify walks the chain with the stored checkpoints.
func (s *sealed) verify() *auditchain.Finding {
	s.t.Helper()
	stored, err := audit.Checkpoints(s.As(s.Operator()), s.DB, 0)
	require.NoError(s.t, err)
	published, err := s.Ring.Public()
	require.NoError(s.t, err)
	var keys jose.JSONWebKeySet
	require.NoError(s.t, json.Unmarshal(published, &keys))
	verifier := &auditchain.Verifier{}
	for _, one := range stored {
		checkpoint := auditchain.Checkpoint{ID: string(one.ID), Seq: one.Seq, Link: one.Link, Signature: one.Signature,
			CreatedAt: one.CreatedAt}
		said, err := checkpoint.Read(keys)
		require.NoError(s.t, err)
		require.Equal(s.t, platformtest.Issuer, said.Issuer)
		require.Nil(s.t, verifier.Expect(checkpoint))
	}
	if found := verifier.Add(s.chain()); found != nil {
		return found
	}
	return verifier.End()
}

// tamper changes stored rows, as a superuser who sets every guard aside.
func (s *sealed) tamper(statements ...string) {
	s.t.Helper()
	transaction, err := s.Admin.Begin(s.t.Context())
	require.NoError(s.t, err)
	defer func() { _ = transaction.Rollback(context.Background()) }() // when a statement has failed
	for _, statement := range append([]string{`SET LOCAL session_replication_role = replica`}, statements...) {
		for _, one := range strings.Split(statement, ";") {
			_, err := transaction.Exec(s.t.Context(), one)
			require.NoError(s.t, err, one)
		}
	}
	require.NoError(s.t, transaction.Commit(s.t.Context()))
}

func TestWhatIsCommittedIsSealedOnceInOrderAndSigned(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 7)
	s.seal()
	s.seal()
	require.Equal(t, 7, s.Count("audit_link", ""))
	require.Equal(t, 1, s.Count("audit_checkpoint", "seq = 7"))
	s.write(3)
	s.seal()
	require.Equal(t, 10, s.Count("audit_link", ""))
	require.Equal(t, 1, s.Count("audit_checkpoint", ""), "the last checkpoint is not five minutes old")
	require.Nil(t, s.verify())
	chain := s.chain()
	for i, entry := range s.Audit() {
		require.Equal(t, string(entry.ID), chain[i].Entry.ID, "in the order of commits")
		require.Equal(t, i%7%3 == 0, chain[i].Entry.BreakGlass)
	}
	s.tamper(`UPDATE audit_checkpoint SET created_at = now() - interval '1 hour'`)
	s.seal()
	require.Equal(t, 1, s.Count("audit_checkpoint", "seq = 10"), "signed although nothing new came")
	require.Nil(t, s.verify())
}

func TestATransactionThatStillRunsHoldsBackWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 2)
	slow, err := s.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = slow.Rollback(context.Background()) }()
	_, err = slow.Exec(t.Context(), `SELECT pg_current_xact_id()`)
	require.NoError(t, err)
	s.write(2)
	var sealed int
	// transactions of the server's other databases hold back as well, for as long as they run
	require.Eventually(t, func() bool {
		out, err := s.sealer.Seal(t.Context())
		require.NoError(t, err)
		require.True(t, out.Held)
		sealed += out.Entries
		return sealed == 2
	}, patience, tick)
	require.NoError(t, slow.Rollback(t.Context()))
	s.seal()
	require.Equal(t, 4, s.Count("audit_link", ""))
	require.Nil(t, s.verify())
}

func TestSealersAtOnceMakeOneChain(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 1)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 20 {
				_, err := s.sealer.Seal(t.Context())
				require.NoError(t, err)
			}
		})
	}
	s.write(60)
	running.Wait()
	s.seal()
	require.Equal(t, 61, s.Count("audit_link", ""))
	require.Nil(t, s.verify())
}

func TestABatchIsBoundedAndABacklogIsSealedInSeveral(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 0)
	s.SQL(`INSERT INTO audit_entry (id, actor_kind, permission_key, action, allowed, correlation_id, created_at)
		SELECT 'aud_' || lpad(n::text, 26, '0'), 'USER', 'k', 'a', true, 'c', now() FROM generate_series(1, 2300) n`)
	s.free()
	for _, want := range []int{1_000, 1_000, 300} {
		out, err := s.sealer.Seal(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, out.Entries)
		require.Equal(t, want == 1_000, out.Full)
	}
	require.Equal(t, 2, s.Count("audit_checkpoint", ""), "one at the first batch, one a thousand links on")
	require.Nil(t, s.verify())
}

// A server that a dump is restored on has its own transaction numbers: the restored rows keep numbers that lie ahead.
func TestSealingGoesOnAfterARestoreElsewhere(t *testing.T) {
	t.Parallel()
	s := newSealed(t, 3)
	s.seal()
	s.write(1)
	s.tamper(`UPDATE audit_entry SET xid = xid + 1000000000`)
	s.write(2)
	s.seal()
	require.Equal(t, 6, s.Count("audit_link", ""))
	s.write(2)
	s.seal()
	require.Equal(t, 8, s.Count("audit_link", ""))
	require.Nil(t, s.verify())
}

func TestEveryKindOfTamperingIsNamed(t *testing.T) {
	t.Parallel()
	place := func(seq int) string { return fmt.Sprintf(`(SELECT entry_id FROM audit_link WHERE seq = %d)`, seq) }
	shift := `UPDATE audit_link SET seq = -seq - %[2]d WHERE seq > %[1]d; UPDATE audit_link SET seq = -seq
		WHERE seq < 0`
	stranger := `INSERT INTO audit_entry (id, actor_kind, permission_key, action, allowed, correlation_id, created_at)
		VALUES ('aud_0000000000000000000000zzzz', 'USER', 'k', 'a', true, 'c', now())`
	for name, c := range map[string]struct {
		statements []string
		problem    auditchain.Problem
		seq        int
		field      string
	}{
		"a denial made an allowance": {[]string{`UPDATE audit_entry SET allowed = NOT allowed
			WHERE id = ` + place(4)}, auditchain.Changed, 4, "allowed"},
		"break-glass hidden": {[]string{`UPDATE audit_entry SET break_glass = false
			WHERE id = ` + place(4)}, auditchain.Changed, 4, "breakGlass"},
		"the actor exchanged": {[]string{`UPDATE audit_entry SET actor_id = 'usr_other'
			WHERE id = ` + place(5)}, auditchain.Changed, 5, "actorId"},
		"a document changed": {[]string{`UPDATE audit_entry SET after = '{"n": 99}'
			WHERE id = ` + place(6)}, auditchain.Changed, 6, ""},
		"the time changed": {[]string{`UPDATE audit_entry SET created_at = created_at + interval '1 microsecond'
			WHERE id = ` + place(2)}, auditchain.Changed, 2, ""},
		"two rows changed": {[]string{`UPDATE audit_entry SET reason = 'x'
			WHERE id IN (` + place(7) + `,` + place(3) + `)`}, auditchain.Changed, 3, ""},
		"a row deleted":  {[]string{`DELETE FROM audit_entry WHERE id = ` + place(4)}, auditchain.Missing, 4, ""},
		"a link deleted": {[]string{`DELETE FROM audit_link WHERE seq = 4`}, auditchain.Missing, 4, ""},
		"a link deleted and its gap closed": {[]string{`DELETE FROM audit_link WHERE seq = 4`,
			fmt.Sprintf(shift, 4, -1)}, auditchain.Missing, 4, ""},
		"links exchanged": {[]string{`UPDATE audit_link SET seq = -3
			WHERE seq = 3`, `UPDATE audit_link SET seq = 3 WHERE seq = 5`,
			`UPDATE audit_link SET seq = 5 WHERE seq = -3`}, auditchain.Reordered, 3, ""},
		"entries exchanged": {[]string{`CREATE TEMP TABLE was ON COMMIT DROP AS SELECT seq, entry_id FROM audit_link
			WHERE seq IN (3, 5)`,
			`UPDATE audit_link SET entry_id = 'aud_' || seq WHERE seq IN (3, 5)`,
			`UPDATE audit_link a SET entry_id = w.entry_id FROM was w WHERE a.seq IN (3, 5)
				AND w.seq = 8 - a.seq`}, auditchain.Reordered, 3, ""},
		"neighbours exchanged": {[]string{`UPDATE audit_link SET seq = -3
			WHERE seq = 3`, `UPDATE audit_link SET seq = 3 WHERE seq = 4`,
			`UPDATE audit_link SET seq = 4 WHERE seq = -3`}, auditchain.Reordered, 3, ""},
		"the end cut off": {[]string{`DELETE FROM audit_link WHERE seq > 5`}, auditchain.Truncated, 6, ""},
		"an entry inserted": {[]string{stranger, fmt.Sprintf(shift, 3, 1),
			`INSERT INTO audit_link (seq, entry_id, leaf, link, sealed_at)
				SELECT 4, e.id, sha256('\x00'::bytea), sha256('\x01'::bytea), now() FROM audit_entry e
				WHERE id = 'aud_0000000000000000000000zzzz'`},
			auditchain.Changed, 4, ""},
		"a change with its leaf": {[]string{`UPDATE audit_entry SET break_glass = NOT break_glass
			WHERE id = ` + place(4),
			`UPDATE audit_link SET leaf = sha256('\x02'::bytea) WHERE seq = 4`}, auditchain.Changed, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSealed(t, 9)
			s.seal()
			require.Nil(t, s.verify())
			ids := map[int]string{}
			for _, link := range s.chain() {
				ids[link.Seq] = link.Entry.ID
			}
			s.tamper(c.statements...)
			found := s.verify()
			require.NotNil(t, found)
			require.Equal(t, c.problem, found.Problem, found.Text)
			require.Equal(t, c.seq, found.Seq, found.Text)
			if c.field != "" {
				require.Equal(t, c.field, found.Field, found.Text)
			}
			if c.problem == auditchain.Changed && name != "an entry inserted" {
				require.Equal(t, ids[c.seq], found.EntryID)
			}
		})
	}
}
