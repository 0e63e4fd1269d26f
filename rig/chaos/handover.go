package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// handoverMost bounds how long a stop's hand-over is looked at; beyond it, it is recorded as that long.
const handoverMost = 20 * time.Second

// heldSQL is every claimed operation with its worker and the number of the claim.
const heldSQL = `SELECT id, claimed_by, claim_epoch FROM operation WHERE claimed_by IS NOT NULL AND ended_at IS NULL`

// held is an operation in a worker's hands.
type held struct {
	ID, By string
	Epoch  int64
}

// stopServer ends a server as an administrator does, and records how long what it had lay idle.
func (s *Suite) stopServer(ctx context.Context, rng *rand.Rand) error {
	server := one(rng, s.servers())
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	found, err := conn.Query(ctx, heldSQL)
	if err != nil {
		return err
	}
	before, err := pgx.CollectRows(found, pgx.RowToStructByPos[held])
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := server.Restart(ctx); err != nil {
		return err
	}
	if len(before) > 0 {
		return s.handover(ctx, conn, before, begun)
	}
	return nil
}

// handover waits until what an ended worker had claimed is claimed by other workers or has ended, and notes the time.
func (s *Suite) handover(ctx context.Context, conn *pgx.Conn, before []held, begun time.Time) error {
	ids, epochs, workers := make([]string, len(before)), make([]int64, len(before)), make([]string, len(before))
	for i, one := range before {
		ids[i], workers[i], epochs[i] = one.ID, one.By, one.Epoch
	}
	for {
		var idle, gone int
		err := conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE o.ended_at IS NULL AND o.claim_epoch = was.epoch),
			count(*)
			FROM unnest($1::text[], $2::text[], $3::bigint[]) AS was (id, worker, epoch) JOIN operation o ON o.id = was.id
			WHERE NOT EXISTS (SELECT FROM worker_process w
			WHERE w.id = was.worker)`, ids, workers, epochs).Scan(&idle, &gone)
		if err != nil {
			return err
		}
		taken := time.Since(begun)
		if gone == 0 { // it was no worker, or one with empty hands
			return nil
		}
		if idle == 0 || taken > handoverMost || ctx.Err() != nil {
			s.mu.Lock()
			s.handovers = append(s.handovers, taken.Round(time.Millisecond))
			s.mu.Unlock()
			return nil
		}
		pause(ctx, 20*time.Millisecond)
	}
}
