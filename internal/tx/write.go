package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// maxTries bounds how often a verb runs: it begins again after a deadlock.
const maxTries = 3

// Tx is one verb's transaction: the caller, an Ent client and plain SQL on one connection.
type Tx struct {
	// Client is Ent on this transaction.
	*db.Client
	// Actor is who is calling.
	Actor *authz.Actor
	// Request is what ties the call to its traces.
	Request authz.RequestInfo
	// Now is the transaction's one moment, by the database's clock.
	Now time.Time

	database *DB
	conn     *pgx.Conn
	topics   []string
	last     pgx.Batch // goes out with COMMIT
}

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

// Query runs a query.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

// QueryRow runs a query for one row.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}

// SendBatch pipelines statements.
func (t *Tx) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, batch)
}

// Last returns the batch that goes out with COMMIT. It is for what nothing else in the transaction reads; when one of
// its statements fails, nothing is written, as with any other.
func (t *Tx) Last() *pgx.Batch { return &t.last }

// Flush sends what Last holds at once, for a caller that must know whether the database takes it. Last is empty then.
func (t *Tx) Flush(ctx context.Context) error {
	last := t.last
	t.last = pgx.Batch{}
	if last.Len() == 0 {
		return nil
	}
	return t.conn.SendBatch(ctx, &last).Close()
}

// CopyFrom writes rows into a table by COPY.
func (t *Tx) CopyFrom(ctx context.Context, table string, columns []string, rows pgx.CopyFromSource) (int64, error) {
	return t.conn.CopyFrom(ctx, pgx.Identifier{table}, columns, rows)
}

// Wake hints at topics once the transaction has committed.
func (t *Tx) Wake(topics ...string) { t.topics = append(t.topics, topics...) }

// Deny records a refusal apart from this transaction, which is about to be rolled back.
func (t *Tx) Deny(denial Denial) { t.database.Deny(denial) }

// Write runs fn as the caller of ctx in one transaction, and commits when fn returns nil. After a deadlock fn runs
// again from the start, so it must not act outside the transaction. Its ctx ends with the transaction's bound,
// Options.Longest. UNAUTHENTICATED when the credential is missing or not valid.
func (d *DB) Write(ctx context.Context, fn func(ctx context.Context, t *Tx) error) error {
	credential, ok := CredentialFrom(ctx)
	if !ok {
		return fault.New(fault.Unauthenticated, "a credential is required")
	}
	return contended(d.retry(func() error {
		from := d.poolFor(credential)
		err := d.writeFrom(ctx, from, credential, fn)
		var moved *wrongPool
		if errors.As(err, &moved) {
			err = d.writeFrom(ctx, moved.right, credential, fn)
		}
		return err
	}))
}

// contended turns the error of a lock that could not be taken in time into UNAVAILABLE: another caller's change takes
// long, and this one may try again.
func contended(err error) error {
	if refusedWith(err, lockNotAvailable) {
		return fault.New(fault.Unavailable, "another change has locked what this one needs; try again").Because(err)
	}
	return err
}

// As runs fn in one transaction as the platform itself, under the workers' login role.
func (d *DB) As(ctx context.Context, actor *authz.Actor, fn func(ctx context.Context, t *Tx) error) error {
	return d.AsPipelined(ctx, actor, func(*pgx.Batch) {}, func(ctx context.Context, t *Tx, _ *pgx.Batch) error {
		return fn(ctx, t)
	})
}

// AsPipelined is As in two round trips where the statements are known beforehand: BEGIN goes out with the reads, and
// COMMIT with the writes that fn queues, which are those of Tx.Last. fn may use t in between like any verb. After a
// deadlock reads and fn run again from the start.
func (d *DB) AsPipelined(ctx context.Context, actor *authz.Actor, reads func(*pgx.Batch),
	fn func(ctx context.Context, t *Tx, writes *pgx.Batch) error) error {
	first := func(t *Tx, batch *pgx.Batch) {
		batch.Queue(nowSQL).QueryRow(t.setNow)
		reads(batch)
	}
	return d.retry(func() error {
		return d.inTx(ctx, d.worker, first, func(ctx context.Context, t *Tx) error {
			t.Actor = actor
			return fn(ctx, t, &t.last)
		})
	})
}

// wrongPool reports that the caller belongs to another login role.
type wrongPool struct{ right *pool }

func (*wrongPool) Error() string { return "the caller belongs to another login role" }

func (d *DB) writeFrom(ctx context.Context, from *pool, credential Credential,
	fn func(context.Context, *Tx) error) error {
	var caller entered
	enter := func(_ *Tx, batch *pgx.Batch) {
		caller.queue(batch, credential)
	}
	return d.beyondNode(from, d.inTx(ctx, from, enter, func(ctx context.Context, t *Tx) error {
		t.Now = caller.now.UTC()
		actor, err := caller.actor(credential, &d.actors)
		tell(ctx, err)
		if err != nil {
			return err
		}
		if right := d.rightPool(credential, actor, from); right != from {
			return &wrongPool{right: right}
		}
		t.Actor = authz.Noting(ctx, actor)
		return fn(ctx, t)
	}))
}

// beyondNode turns the database's own refusal of a statement into FORBIDDEN for the nodes' login role, which is granted
// next to nothing: a node that requests what only others read is refused there before any permission key is checked.
// For the other roles such a refusal is a mistake of ours, and stays one.
func (d *DB) beyondNode(from *pool, err error) error {
	var refused *pgconn.PgError
	if from == d.node && errors.As(err, &refused) && refused.Code == "42501" {
		return fault.New(fault.Forbidden, "the credential of a node cannot request this")
	}
	return err
}

// inTx reserves a connection, begins, runs fn and commits or rolls back; hints go out after the commit. BEGIN and what
// first queues are one round trip.
func (d *DB) inTx(ctx context.Context, from *pool, first func(*Tx, *pgx.Batch),
	fn func(context.Context, *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reserved, conn, err := from.reserve(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = reserved.Close() }()
	ctx, over := d.bounded(ctx)
	defer over()
	t := d.newTx(ctx, reserved, conn)
	if err = t.begin(ctx, first); err == nil {
		err = fn(ctx, t)
	}
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		return errors.Join(overdue(ctx, refusedText(err)), t.abort(ctx))
	}
	d.Wake(t.topics...)
	return nil
}

// commit ends the transaction in the round trip of its last statements.
func (t *Tx) commit(ctx context.Context) error {
	t.last.Queue("COMMIT").Exec(func(ended pgconn.CommandTag) error {
		if ended.String() != "COMMIT" { // PostgreSQL answers ROLLBACK, without an error, once any statement has failed
			return errors.New("a statement had failed, so that nothing was written")
		}
		return nil
	})
	if err := t.conn.SendBatch(ctx, &t.last).Close(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// begin opens the transaction and runs what first queues.
func (t *Tx) begin(ctx context.Context, first func(*Tx, *pgx.Batch)) error {
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	first(t, batch)
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// idle is the wire protocol's status of a connection that is not in a transaction.
const idle = 'I'

// abort ends a transaction that failed, unless it ended by itself or its connection is closed.
func (t *Tx) abort(ctx context.Context) error {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == idle {
		return nil
	}
	_, err := t.conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// refusedText turns refusals of the database that a caller caused into faults: a NUL character, which JSON takes and no
// column can hold, and what the platform's own functions refuse. A fault that a verb returned itself, with the field's
// path, stays.
func refusedText(err error) error {
	if _, said := fault.As(err); said {
		return err
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case "22021", "22P05":
		return fault.New(fault.InvalidArgument, "text may not hold NUL characters").Because(err)
	case "GP404": // platform.guard_live_project: the project was deleted meanwhile
		return fault.NoSuch().Because(err)
	case "GP510": // platform.give_posix
		return fault.New(fault.FailedPrecondition, "%s: no one else can act there as an account of their own",
			refused.Message).Because(err)
	case "GP511": // platform.seat_volumes: another launch has settled its place meanwhile
		return fault.New(fault.Conflict, "%s: plan again", refused.Message).At("input.volumes").Because(err)
	case "GP507": // platform.free_address and platform.take_ranges
		return fault.New(fault.AddressesExhausted, "%s: an operator gives the installation larger pools",
			refused.Message).Because(err)
	}
	return err
}

func (d *DB) newTx(ctx context.Context, reserved *sql.Conn, conn *pgx.Conn) *Tx {
	return &Tx{
		Request: authz.Request(ctx), database: d, conn: conn,
		Client: db.NewClient(db.Driver(joined{entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: reserved})})),
	}
}

// NotAwaited lets the transaction that it is sent in end before what it wrote is on the disk: for what a crash of the
// database may forget.
const NotAwaited = `SELECT set_config('synchronous_commit', 'off', true)`

// nowSQL reads the transaction's moment.
const nowSQL = `SELECT clock_timestamp()`

func (t *Tx) setNow(row pgx.Row) error {
	if err := row.Scan(&t.Now); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	t.Now = t.Now.UTC()
	return nil
}

// joined is Ent's driver inside a transaction: what Ent would wrap in one of its own, such as an
// update of one row, joins the one that is open.
type joined struct{ *entsql.Driver }

// Tx implements dialect.Driver.
func (j joined) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(j), nil }

// BeginTx is what Ent's client looks for when a transaction has options.
func (j joined) BeginTx(ctx context.Context, _ *sql.TxOptions) (dialect.Tx, error) { return j.Tx(ctx) }

// PostgreSQL's codes of a transaction that may succeed when it is run again.
const (
	deadlockDetected     = "40P01"
	serializationFailure = "40001"
	lockNotAvailable     = "55P03" // after lockTimeout
)

// refusedWith reports whether PostgreSQL refused a statement with one of the codes.
func refusedWith(err error, codes ...string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}

// retry runs a transaction again after a deadlock or a serialization failure, and once after a lock that could not be
// had in time: each such try has waited for lockTimeout.
func (d *DB) retry(run func() error) (err error) {
	for try := range maxTries {
		err = run()
		again := refusedWith(err, deadlockDetected, serializationFailure) ||
			try == 0 && refusedWith(err, lockNotAvailable)
		if !again {
			return err
		}
	}
	return err
}

// OutOfReach reports whether err means that row-level security did not let a row be written: what the row belongs to
// was taken out of the caller's reach since the caller loaded it, or never was in it.
func OutOfReach(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501" && strings.Contains(refused.Message,
		"row-level security")
}

// Violates reports whether err is a violation of the named constraint or unique index.
func Violates(err error, constraint string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.ConstraintName == constraint
}
