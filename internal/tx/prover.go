package tx

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// mostProofs is how many proofs one statement makes: none of those who ask waits long for the others'.
	mostProofs = 32
	// provingAtOnce is how many such statements of one kind and one pool are under way. What is asked for meanwhile is
	// joined, so that a process that is asked much spends little on each.
	provingAtOnce = 2
)

// claim is one who asks for a proof.
type claim struct {
	ctx        context.Context //nolint:containedctx // of who waits
	credential Credential
	about      Subject
	proof      Proof // zero when there is none to be had; not to be read before done
	done       chan error
}

// prover makes proofs of one kind for all who ask a process: those who ask while a statement is under way share the next.
// A proof is always made by a statement that began after it was asked for.
type prover struct {
	db   *DB
	from *pool

	mu      sync.Mutex
	waiting []*claim
	leading int // statements under way
}

// provers are those of a process. Their number is that of the kinds of subjects and of the pools that prove.
type provers struct {
	mu  sync.Mutex
	all map[proverKey]*prover
}

type proverKey struct {
	from *pool
	sql  string
}

// of returns the prover of a pool for what a statement proves.
func (p *provers) of(db *DB, from *pool, sql string) *prover {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.all[proverKey{from, sql}]
	if found == nil {
		if p.all == nil {
			p.all = map[proverKey]*prover{}
		}
		found = &prover{db: db, from: from}
		p.all[proverKey{from, sql}] = found
	}
	return found
}

// do proves what one asks for. Nothing is proved for who has given up before.
func (p *prover) do(ctx context.Context, one *claim) error {
	p.mu.Lock()
	p.waiting = append(p.waiting, one)
	lead := p.leading < provingAtOnce
	if lead {
		p.leading++
	}
	p.mu.Unlock()
	if lead {
		go p.lead(context.WithoutCancel(ctx))
	}
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead proves what waits until nothing does. The context is that of whoever was first, without its end.
func (p *prover) lead(ctx context.Context) {
	for group := p.next(); group != nil; group = p.next() {
		err := p.prove(ctx, group)
		var refused *pgconn.PgError
		if len(group) == 1 || !errors.As(err, &refused) {
			for _, one := range group {
				one.done <- err
			}
			continue
		}
		for _, one := range group { // what one of them asks for is nobody else's error
			one.done <- p.prove(ctx, []*claim{one})
		}
	}
}

func (p *prover) prove(ctx context.Context, group []*claim) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.db.proveAll(ctx, p.from, group)
}

// next takes what is proved next; nil ends the leading.
func (p *prover) next() []*claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	var group []*claim
	taken := 0
	for taken < len(p.waiting) && len(group) < mostProofs {
		if one := p.waiting[taken]; one.ctx.Err() == nil {
			group = append(group, one)
		}
		taken++
	}
	p.waiting = slices.Delete(p.waiting, 0, taken)
	if group == nil {
		p.leading--
	}
	return group
}

// proveAll proves claims of one kind in one statement.
func (db *DB) proveAll(ctx context.Context, from *pool, group []*claim) error {
	rows, err := from.Query(ctx, group[0].about.sql, given(group, db.anchor.Load())...)
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

// given are a statement's arguments for claims of one kind: what each shows, the anchor, and the columns of what they ask.
func given(group []*claim, anchor int64) []any {
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
