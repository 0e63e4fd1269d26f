package tx

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/dbconn"
	"github.com/gpuaas/app-platform/migrations"
)

// Bounds of each statement of a transaction; longest bounds the transaction as a whole. No statement, no wait for a
// lock and no pause between statements may hold back the commit-ordered feeds for longer. The locks of a process that
// hangs are free after idleTimeout, so that other processes take its operations over within 15 s.
const (
	statementTimeout = "15s"
	lockTimeout      = "10s"
	idleTimeout      = "10s"
)

// Bounds of a connection on this side: a database host that vanishes sends neither answer nor reset.
const (
	// answerTimeout is how long the database may be silent while an answer is awaited, and take no bytes while some are
	// sent. A statement is ended by the server after statementTimeout, so that a healthy one answers before.
	answerTimeout = 20 * time.Second
	// callTimeout bounds a read or a transaction as a whole, the wait for a connection included.
	callTimeout = time.Minute
	// pingTimeout is how long an idle connection may take to show that it lives before another is taken: when all of a
	// pool's connections are dead, each costs a call this time.
	pingTimeout = time.Second
)

const (
	// leaseConnections are apart from the workers' pool, for what must not wait behind their work.
	leaseConnections = 2
	// feedConnections are apart too, and no more than another pool's: however many callers watch, they take no
	// connection from the engine.
	feedConnections = 8
)

// applicationPrefix begins the name of every connection of ours, which pg_stat_activity shows.
const applicationPrefix = "app-platform "

// maxHints bounds how many callers are remembered to have platform scope.
const maxHints = 10_000

// Hints wakes live readers and workers after a commit that changed something. It must not block.
type Hints interface{ Wake(topics ...string) }

// Denials takes refusals for the audit; it must not block.
type Denials interface{ Denied(Denial) }

// Denial is a refused privileged attempt.
type Denial struct {
	Actor             *authz.Actor
	Request           authz.RequestInfo
	Action, Key, Code string
	ObjectID          string
	TenantID, Project ids.ID
	Instance          ids.ID // that the object is, or is of; empty for none
	AppSlug           string // the app of that instance, where it was read
	Reason            string
	At                time.Time
}

// Options of a database.
type Options struct {
	// Connections is the most connections of each login role's pool; 0 means 16.
	Connections int
	// Denials takes refusals; nil drops them.
	Denials Denials
	// Now is the process's own clock; nil means the system's. It is compared with the database's, and decides nothing.
	Now func() time.Time
	// Tracer sees every statement; nil for none.
	Tracer pgx.QueryTracer
	// Answer is how long the database may take to answer before a connection is given up; 0 means 20 seconds.
	Answer time.Duration
	// Longest bounds a writing transaction; 0 means 30 s.
	Longest time.Duration
	// Began is called when the database has begun another generation: it is on another server, or another timeline,
	// than when a process of ours was connected last. nil for none.
	Began func(generation int64)
}

// DB is the database with a pool for each of its login roles.
type DB struct {
	api, operator, node, worker, lease, feed *pool

	options  Options
	clock    *clock
	wakes    atomic.Pointer[Hints]
	hints    sync.Map // a credential's fingerprint → true: the caller was last seen with platform scope
	hinted   int
	hintLock sync.Mutex
	actors   actorCache
	anchor   atomic.Int64 // what proofs rest on, of the newest
	provers  provers
}

// pool is one login role's connections, for pgx and for Ent.
type pool struct {
	*pgxpool.Pool
	std *sql.DB
}

// Open connects to the migrated database at dsn, an administrator's address, as each login role. ErrSkew when this
// machine's clock is too far from the database's.
func Open(ctx context.Context, dsn string, options Options) (*DB, error) {
	if options.Connections == 0 {
		options.Connections = 16
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Answer == 0 {
		options.Answer = answerTimeout
	}
	if options.Longest == 0 {
		options.Longest = longest
	}
	db := &DB{options: options, clock: newClock(options.Now)}
	for _, one := range []struct {
		role        string
		connections int
		into        **pool
	}{
		{"app_api", options.Connections, &db.api}, {"app_operator", options.Connections, &db.operator},
		{"app_node", options.Connections, &db.node},
		{"app_worker", options.Connections, &db.worker}, {"app_worker", leaseConnections, &db.lease},
		{"app_worker", min(feedConnections, options.Connections), &db.feed},
	} {
		opened, err := openPool(ctx, dsn, one.role, one.connections, options)
		if err != nil {
			db.Close()
			return nil, err
		}
		*one.into = opened
	}
	if err := db.setClock(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func openPool(ctx context.Context, dsn, role string, connections int, options Options) (*pool, error) {
	address, err := migrations.RoleDSN(dsn, role)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	config.MaxConns = int32(connections) // #nosec G115 -- the operator's number of connections
	config.ConnConfig.Tracer = options.Tracer
	config.ConnConfig.RuntimeParams["statement_timeout"] = statementTimeout
	config.ConnConfig.RuntimeParams["lock_timeout"] = lockTimeout
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = idleTimeout
	config.ConnConfig.RuntimeParams["application_name"] = applicationPrefix + role
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.DialFunc, config.PingTimeout = dbconn.Dial(options.Answer), pingTimeout
	migrations.OnlyPrimary(&config.ConnConfig.Config)
	config.ConnConfig.OnPgError = endReadOnly(config.ConnConfig.OnPgError)
	config.AfterConnect = options.arrive
	connected, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", role, err)
	}
	return &pool{Pool: connected, std: openStd(connected)}, nil
}

// Ping returns an error when the database does not answer.
func (db *DB) Ping(ctx context.Context) error { return db.api.Ping(ctx) }

// Worker is the workers' pool, for the claim loop and webhooks, which see every tenant.
func (db *DB) Worker() *pgxpool.Pool { return db.worker.Pool }

// Lease is for the heartbeat on which every claim of this process rests: however busy the workers'
// pool is, and however long its transactions wait for locks, a beat finds a connection.
func (db *DB) Lease() *pgxpool.Pool { return db.lease.Pool }

// Feed is for live readers, which were authorised one by one: with the workers' rights, on connections of their own.
func (db *DB) Feed() *pgxpool.Pool { return db.feed.Pool }

// API is the callers' pool, for the few calls that come before a caller is known.
func (db *DB) API() *pgxpool.Pool { return db.api.Pool }

// Pools returns the pools of connections by the name of what they are for.
func (db *DB) Pools() map[string]*pgxpool.Pool {
	return map[string]*pgxpool.Pool{"api": db.api.Pool, "operator": db.operator.Pool, "node": db.node.Pool,
		"worker": db.worker.Pool, "lease": db.lease.Pool, "feed": db.feed.Pool}
}

// Now returns the database's time, whatever this machine's clock shows: the same for all processes, in the microseconds
// that the database keeps.
func (db *DB) Now() time.Time { return db.clock.now().UTC().Truncate(time.Microsecond) }

// SetHints sets the receiver of hints; until then they are dropped. It is a setter because the hub that receives them
// listens on the open database. It may be called while transactions run.
func (db *DB) SetHints(hints Hints) { db.wakes.Store(&hints) }

// Wake sends hints at once, for changes outside of Write.
func (db *DB) Wake(topics ...string) {
	if hints := db.wakes.Load(); hints != nil && len(topics) > 0 {
		(*hints).Wake(topics...)
	}
}

// Seen returns the caller that a credential last entered as, or nil when that is not remembered. It decides nothing: it
// only names the caller of a request that has entered.
func (db *DB) Seen(credential Credential) *authz.Actor { return db.actors.last(credential) }

// Deny records a refusal.
func (db *DB) Deny(denial Denial) {
	if db.options.Denials != nil {
		db.options.Denials.Denied(denial)
	}
}

// Close ends every connection; safe when Open failed half-way.
func (db *DB) Close() {
	for _, p := range []*pool{db.api, db.operator, db.node, db.worker, db.lease, db.feed} {
		if p != nil {
			_ = p.std.Close()
			p.Pool.Close()
		}
	}
}

// poolFor returns the pool that a credential's transactions run on. A tenant's caller starts as app_api; a caller that
// turns out to have platform scope is remembered and starts as app_operator from then on. It is remembered by
// fingerprint: a forged secret under an operator's id, which audit rows show, starts as app_api.
func (db *DB) poolFor(credential Credential) *pool {
	switch credential.kind {
	case "node", "enrolment":
		return db.node
	}
	if _, platform := db.hints.Load(credential.Fingerprint()); platform {
		return db.operator
	}
	return db.api
}

// remember notes whether a credential has platform scope. The table is emptied when it is full:
// a forgotten caller costs one more round trip.
func (db *DB) remember(credential Credential, platform bool) {
	db.hintLock.Lock()
	defer db.hintLock.Unlock()
	if !platform {
		db.hints.Delete(credential.Fingerprint())
		return
	}
	if db.hinted++; db.hinted > maxHints {
		db.hints.Clear()
		db.hinted = 1
	}
	db.hints.Store(credential.Fingerprint(), true)
}
