package tx_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// roles keeps as whom batches were sent.
type roles struct {
	mu   sync.Mutex
	seen []string
}

// TraceQueryStart implements pgx.QueryTracer.
func (r *roles) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *roles) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (r *roles) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, conn.Config().User)
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *roles) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *roles) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// taken returns the roles since the last call.
func (r *roles) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// forge is a secret under the id of another, as anybody who read the id in an audit entry can make it.
func forge(id string) string {
	other, _ := token.Mint(token.Session)
	body := "gpu_ses_" + strings.TrimPrefix(id, "ses_") + "_" + strings.Split(other, "_")[3]
	body = body[:len(body)-6]
	return body + checksum(body)
}

func TestAForgedSecretUnderAnOperatorsIDNeverRunsAsTheOperatorsRole(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	seen := &roles{}
	database, err := tx.Open(t.Context(), kit.DSN, tx.Options{Connections: 2, Tracer: seen})
	require.NoError(t, err)
	defer database.Close()
	session := kit.Session(kit.Operator())
	as := func(text string) error {
		credential, err := tx.ParseCredential(text, kit.Ring, kit.DB.Now())
		require.NoError(t, err)
		_, err = database.Read(tx.WithCredential(t.Context(), credential))
		return err
	}
	require.NoError(t, as(session))
	require.NoError(t, as(session))
	require.Equal(t, "app_operator", seen.taken()[2], "the operator is remembered")

	known, err := token.ParseSecret(session)
	require.NoError(t, err)
	require.True(t, fault.Is(as(forge(string(known.ID))), fault.Unauthenticated))
	require.False(t, slices.Contains(seen.taken(), "app_operator"),
		"what the forger asks runs with no rights over all tenants")
	require.NoError(t, as(session))
	require.Equal(t, []string{"app_operator"}, seen.taken(), "and the operator is still remembered")
}
