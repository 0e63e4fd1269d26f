package tx

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gpuaas/app-platform/internal/gather"
)

const (
	// mostProofs is how many proofs one statement returns at most: no claim waits long for the others'.
	mostProofs = 32
	// provingAtOnce is how many such statements of one kind and one pool are under way. Claims that come meanwhile are
	// joined, so that a process with many claims spends little on each.
	provingAtOnce = 2
)

// claim is one request for a proof.
type claim struct {
	ctx        context.Context //nolint:containedctx // of who waits
	credential Credential
	about      Subject
	proof      Proof // zero when there is none to be had; not to be read before done
	done       chan error
}

// provers prove for all callers of a process: claims that come while a statement is under way share the next, so that a
// proof is always of a statement that began after its claim. There is one group for each kind of subject and each pool
// that proves.
type provers struct {
	mu  sync.Mutex
	all map[proverKey]*gather.Group[*claim]
}

type proverKey struct {
	from *pool
	sql  string
}

// of returns the group that proves by a statement on a pool.
func (p *provers) of(db *DB, from *pool, sql string) *gather.Group[*claim] {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := proverKey{from, sql}
	if p.all == nil {
		p.all = map[proverKey]*gather.Group[*claim]{}
	}
	if p.all[key] == nil {
		p.all[key] = gather.New(mostProofs, provingAtOnce, func(group []*claim) { db.proveEach(from, group) },
			func(one *claim) bool { return one.ctx.Err() != nil })
	}
	return p.all[key]
}

// wait returns once the claim is proved, or its caller has given up.
func (c *claim) wait(ctx context.Context) error {
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// proveEach proves claims of one kind together, and each by itself where that is refused: one claim's error must not
// become another's. The context is that of the first claim, without its end.
func (db *DB) proveEach(from *pool, group []*claim) {
	prove := func(group []*claim) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(group[0].ctx), callTimeout)
		defer cancel()
		return db.proveAll(ctx, from, group)
	}
	err := prove(group)
	var refused *pgconn.PgError
	again := len(group) > 1 && errors.As(err, &refused)
	for _, one := range group {
		if again {
			err = prove([]*claim{one})
		}
		one.done <- err
	}
}

// proveAll proves claims of one kind in one statement.
func (db *DB) proveAll(ctx context.Context, from *pool, group []*claim) error {
	rows, err := from.Query(ctx, group[0].about.sql, proofArgs(group, db.anchor.Load())...)
	if err != nil {
		return err
	}
	return db.scanProofs(rows, group)
}

// scanProofs gives claims their proofs.
func (db *DB) scanProofs(rows pgx.Rows, group []*claim) error {
	var number int64
	var rights, versions *string
	_, err := pgx.ForEachRow(rows, []any{&number, &rights, &versions}, func() error {
		group[number-1].proof = db.proved(rights, versions)
		return nil
	})
	return err
}

// proofArgs returns a statement's arguments for claims of one kind: their credentials, the anchor, and their columns.
func proofArgs(group []*claim, anchor int64) []any {
	credentials, hashes := make([]string, len(group)), make([][]byte, len(group))
	columns := make([][]string, len(group[0].about.args))
	for column := range columns {
		columns[column] = make([]string, len(group))
	}
	for i, one := range group {
		credentials[i], hashes[i] = string(one.credential.id), one.credential.hash
		for column, arg := range one.about.args {
			columns[column][i] = arg
		}
	}
	args := []any{credentials, hashes, anchor}
	for _, column := range columns {
		args = append(args, column)
	}
	return args
}
