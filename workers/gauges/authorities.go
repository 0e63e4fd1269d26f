package gauges

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	// authoritiesEvery is how often the authorities that are pinned for adapters are read: they are up to 32 KiB each.
	authoritiesEvery = 10 * time.Minute
	// afterFailure is how long a failed read counts: a database that does not answer would hold up every scrape.
	afterFailure = time.Minute
	// maxAuthorities bounds how many are read.
	maxAuthorities = 200
)

// Authorities knows when the first of the authorities that are pinned for adapters ends.
type Authorities struct {
	DB  *tx.DB
	Log *slog.Logger

	mu    sync.Mutex
	next  time.Time // of the next read
	first time.Time
}

// First returns when the first certificate of a pinned authority ends, as it was within ten minutes; the zero time when
// none is pinned.
func (a *Authorities) First() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.next) {
		return a.first
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	found, err := a.DB.Feed().Query(ctx, `SELECT authority FROM adapter WHERE authority <> '' ORDER BY name LIMIT $1`,
		maxAuthorities)
	var pinned []string
	if err == nil {
		pinned, err = pgx.CollectRows(found, pgx.RowTo[string])
	}
	if err != nil {
		a.next = time.Now().Add(afterFailure)
		a.Log.Warn("the authorities pinned for adapters could not be read", "error", err)
		return a.first
	}
	a.next, a.first = time.Now().Add(authoritiesEvery), time.Time{}
	for _, text := range pinned {
		if end := endOf(text); a.first.IsZero() || !end.IsZero() && end.Before(a.first) {
			a.first = end
		}
	}
	return a.first
}

// endOf returns when the first certificate of an authority ends; the zero time when it has none.
func endOf(authority string) (first time.Time) {
	for rest := []byte(authority); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return first
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || certificate.NotAfter.Before(first)) {
			first = certificate.NotAfter
		}
	}
}
