package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Verification is whether a run gives the same bytes when it is repeated.
type Verification struct {
	Run *Run
	// Same is true when prices, usage, result and ledger are those that the run notes.
	Same bool
	// Differs names the first record that differs, and Recorded and Recomputed what is stored and what comes out.
	Differs, Recorded, Recomputed string
}

// Verify repeats a run from what it notes of itself and compares: prices, usage, each line, and what the ledger has
// booked of each. Key: billing.read on the tenant. NOT_FOUND for what the caller cannot see.
func (s *Service) Verify(ctx context.Context, id ids.ID) (out *Verification, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		run, err := one(ctx, t, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if run == nil || !t.Actor.AllowsOn(authz.BillingRead, authz.Object{TenantID: run.TenantID}) {
			return fault.NoSuch()
		}
		out, err = verify(ctx, t, run)
		return err
	})
	return out, err
}

// Recompute is Verify for the platform itself, which needs no key. NOT_FOUND when the run does not exist.
func Recompute(ctx context.Context, t *tx.Tx, id ids.ID) (*Verification, error) {
	run, err := one(ctx, t, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE id = $1`, id)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, fault.NoSuch()
	}
	return verify(ctx, t, run)
}

func verify(ctx context.Context, t *tx.Tx, run *Run) (*Verification, error) {
	p, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1`, run.PeriodID)
	if err != nil {
		return nil, err
	}
	out := &Verification{Run: run}
	if run.Engine != rating.EngineVersion {
		out.differ("engine", fmt.Sprint(run.Engine), fmt.Sprint(rating.EngineVersion))
		return out, nil
	}
	result, err := rate(ctx, t, p, run.EventTo, mark{run.Generation, run.Watermark})
	if err != nil {
		return nil, err
	}
	if err := out.lines(ctx, t, result); err != nil {
		return nil, err
	}
	out.digests(result)
	if !out.found() {
		err = out.ledger(ctx, t)
	}
	out.Same = !out.found()
	return out, err
}

func (v *Verification) found() bool { return v.Differs != "" }

// differ notes a difference, unless one was found before.
func (v *Verification) differ(what, recorded, recomputed string) {
	if !v.found() && recorded != recomputed {
		v.Differs, v.Recorded, v.Recomputed = what, recorded, recomputed
	}
}

func (v *Verification) digests(result *rating.Result) {
	v.differ("prices", v.Run.PriceHash, result.Prices)
	v.differ("usage", v.Run.InputDigest, result.Input)
	v.differ("result", v.Run.OutputDigest, result.Digest())
}

// lines compares line by line, so that a difference has a name.
func (v *Verification) lines(ctx context.Context, t *tx.Tx, result *rating.Result) error {
	stored, err := lastLines(ctx, t, v.Run.PeriodID, v.Run.Number+1)
	if err != nil {
		return err
	}
	for i := range result.Lines {
		line := &result.Lines[i]
		before := ""
		if found := stored[line.Key]; found != nil {
			before = string(found.JSON())
		}
		delete(stored, line.Key)
		v.differ("line "+line.Key, before, string(line.JSON()))
	}
	for _, key := range sortedKeys(stored) {
		v.differ("line "+key, string(stored[key].JSON()), "")
	}
	return nil
}

// ledger compares each line with what the ledger has booked of it in all runs up to this one.
func (v *Verification) ledger(ctx context.Context, t *tx.Tx) error {
	stored, err := lastLines(ctx, t, v.Run.PeriodID, v.Run.Number+1)
	if err != nil {
		return err
	}
	type booked struct {
		key    string
		amount money.Decimal
	}
	found, err := many(ctx, t, func(row pgx.CollectableRow) (b booked, err error) {
		err = row.Scan(&b.key, &b.amount)
		return b, err
	},
		`SELECT x.line_key, sum(e.amount) FROM ledger_tx x JOIN billing_run r ON r.id = x.run_id
			JOIN ledger_entry e ON e.tx_id = x.id
		WHERE x.of_period_id = $1 AND r.seq <= $2 AND e.account IN ('ACCRUED', 'PLATFORM_BORNE') GROUP BY x.line_key
		ORDER BY x.line_key`,
		v.Run.PeriodID, v.Run.Number)
	if err != nil {
		return err
	}
	for _, b := range found {
		want := money.Decimal{}
		if line := stored[b.key]; line != nil {
			want = line.Amount
		}
		v.differ("ledger of line "+b.key, b.amount.String(), want.String())
	}
	return nil
}
