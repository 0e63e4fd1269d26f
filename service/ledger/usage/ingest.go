// Package usage is the ledger of metered usage: what is recorded once stays, and what cannot be recorded is kept beside
// it with the reason.
package usage

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Added counts what happened to the records of a batch.
type Added struct {
	// Recorded are new, Known were recorded before with the same content.
	Recorded, Known int
	// Reused are the positions in the batch of records whose id is taken by other content.
	Reused []int
}

// columns are those of a record, in the order of values.
var columns = []string{"source", "meter", "usage_id", "basis", "tenant_id", "project_id", "app_instance_id",
	"allocation_id", "member_id", "component_key", "operation_id", "correlation_id", "sku", "region", "session", "unit",
	"quantity", "from_at", "to_at", "retracts", "borne_by", "borne_reason", "borne_owner", "digest", "n"}

const (
	// incomingSQL makes the table that a batch is copied into, once for each connection.
	incomingSQL = `CREATE TEMPORARY TABLE IF NOT EXISTS usage_incoming (source text, meter text, usage_id text,
		basis text,
		tenant_id text, project_id text, app_instance_id text, allocation_id text, member_id text, component_key text,
		operation_id text, correlation_id text, sku text, region text, session text, unit text, quantity text,
		from_at timestamptz, to_at timestamptz, retracts text, borne_by text, borne_reason text, borne_owner text, digest
		bytea,
		n bigint) ON COMMIT DELETE ROWS`
	recordSQL = `INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id,
			allocation_id, member_id, component_key, operation_id, correlation_id, sku, region, session, unit, quantity, from_at,
			to_at, retracts, borne_by, borne_reason, borne_owner, digest, recorded_generation)
		SELECT source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, allocation_id, member_id,
		component_key,
			operation_id, correlation_id, sku, region, session, unit, quantity::numeric, from_at, to_at, retracts, borne_by,
			borne_reason, borne_owner, digest, (SELECT platform.generation())
		FROM pg_temp.usage_incoming ORDER BY n ON CONFLICT (source, meter, usage_id) DO NOTHING`
	// reusedSQL sees what others have recorded meanwhile, too.
	reusedSQL = `SELECT i.n FROM pg_temp.usage_incoming i JOIN usage_record r USING (source, meter, usage_id)
		WHERE r.digest <> i.digest ORDER BY i.n`
)

// Add records a batch, at most once for each id: it is copied to a temporary table and inserted from there in one
// statement. Records whose id has other content are not recorded; the caller puts them in quarantine.
func Add(ctx context.Context, t *tx.Tx, records []metering.Record) (*Added, error) {
	if len(records) == 0 {
		return &Added{}, nil
	}
	if _, err := t.Exec(ctx, incomingSQL); err != nil {
		return nil, fmt.Errorf("prepare for usage records: %w", err)
	}
	if _, err := t.CopyFrom(ctx, "usage_incoming", columns, pgx.CopyFromSlice(len(records), func(n int) ([]any, error) {
		return values(&records[n], n), nil
	})); err != nil {
		return nil, fmt.Errorf("copy usage records: %w", err)
	}
	added, err := t.Exec(ctx, recordSQL)
	if err != nil {
		return nil, fmt.Errorf("record usage: %w", err)
	}
	found, err := t.Query(ctx, reusedSQL)
	if err != nil {
		return nil, fmt.Errorf("find ids that were used: %w", err)
	}
	reused, err := pgx.CollectRows(found, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("find ids that were used: %w", err)
	}
	if _, err := t.Exec(ctx, `TRUNCATE pg_temp.usage_incoming`); err != nil {
		return nil, err
	}
	recorded := int(added.RowsAffected())
	return &Added{Recorded: recorded, Known: len(records) - recorded - len(reused), Reused: reused}, nil
}

// values are a record's, as columns.
func values(r *metering.Record, n int) []any {
	return []any{r.Source, r.Meter, r.UsageID, string(r.Basis), r.TenantID, r.ProjectID, text(r.InstanceID),
		text(r.AllocationID), text(r.MemberID), text(r.ComponentKey), text(r.OperationID), text(r.CorrelationID),
		text(r.SKU),
		text(r.Region), r.Session, r.Unit, r.Quantity, r.From, r.To, text(r.Retracts), string(r.BorneBy),
		text(r.BorneReason), text(r.BorneOwner), r.Digest(), n}
}

// text is a column's value; nil for none.
func text(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// Refused is a record that was not taken.
type Refused struct {
	TenantID, ProjectID, Source string
	Incoming
	// Why is the reason.
	Why fault.Reason
}

// quarantineSQL keeps each content once.
const quarantineSQL = `INSERT INTO usage_quarantine (id, tenant_id, project_id, source, meter, usage_id, code, field,
	message, record,
	digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (source, meter, usage_id, digest) DO NOTHING`

// Quarantine keeps what was not taken. It returns how many were not in it yet.
func Quarantine(ctx context.Context, t *tx.Tx, refused []Refused) (fresh int, err error) {
	for i := range refused {
		one := &refused[i]
		digest := sha256.Sum256(one.Raw)
		tag, err := t.Exec(ctx, quarantineSQL, ids.New(ids.QuarantinedUsage), one.TenantID, one.ProjectID, one.Source,
			operation.Clip(one.Sent.Dimension, metering.MaxID), operation.Clip(one.Sent.ID, metering.MaxID),
			string(one.Why.Code), one.Why.Path, one.Why.Message, operation.Storable(one.Raw),
			digest[:])
		if err != nil {
			return fresh, fmt.Errorf("quarantine a usage record: %w", err)
		}
		fresh += int(tag.RowsAffected())
	}
	return fresh, nil
}
