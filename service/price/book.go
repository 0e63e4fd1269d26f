package price

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Version is a price of the book.
type Version struct {
	rating.Price
	TenantID, ProjectID *ids.ID
	// Number counts the versions of a shelf.
	Number int
	Hash   string
	Reason string
	// CreatedBy is who set it, and CreatedAt when.
	CreatedBy string
	CreatedAt time.Time
}

// TypedID is the version's id.
func (v *Version) TypedID() ids.ID { return ids.ID(v.ID) }

// Until returns when the version expires; nil for never.
func (v *Version) Until() *time.Time {
	if v.To.IsZero() {
		return nil
	}
	return &v.To
}

// Columns are what ScanVersion scans.
const Columns = `price_version.id, price_version.origin, price_version.meter, price_version.sku, price_version.region, price_version.currency,
	price_version.scope, price_version.tenant_id, price_version.project_id, price_version.valid_from, price_version.valid_to,
	price_version.version, price_version.terms, price_version.hash, price_version.reason, price_version.created_by, price_version.recorded_at`

// ScanVersion scans a row of Columns.
func ScanVersion(row pgx.CollectableRow) (*Version, error) {
	v := &Version{}
	var to *time.Time
	var terms string
	err := row.Scan(&v.ID, &v.Origin, &v.Meter, &v.SKU, &v.Region, &v.Currency, &v.Scope, &v.TenantID, &v.ProjectID,
		&v.From,
		&to, &v.Number, &terms, &v.Hash, &v.Reason, &v.CreatedBy, &v.CreatedAt)
	if err != nil {
		return nil, err
	}
	if to != nil {
		v.To = to.UTC()
	}
	v.From = v.From.UTC()
	if owner := narrowest(v.TenantID, v.ProjectID); owner != nil {
		v.Owner = string(*owner)
	}
	return v, json.Unmarshal([]byte(terms), &v.Terms)
}

func narrowest(tenant, project *ids.ID) *ids.ID {
	if project != nil {
		return project
	}
	return tenant
}

// shelf returns the key that versions which must not overlap have in common, as the database writes it.
func (v *Version) shelf() string {
	return v.Meter + "|" + v.SKU + "|" + v.Region + "|" + v.Currency + "|" + v.Owner
}

// encoded returns the terms in their canonical form.
func encoded(terms rating.Terms) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(terms); err != nil {
		panic(err) // text and numbers always encode
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

// Add writes a version into the book and returns it as it is stored. With over it cuts every version that overlaps it;
// without over only the open-ended one, and any other is PRICE_OVERLAP: see rating.Place.
func Add(ctx context.Context, t *tx.Tx, v Version, over bool) (*Version, error) {
	existing, number, err := onShelf(ctx, t, v.shelf())
	if err != nil {
		return nil, err
	}
	prices := make([]rating.Price, len(existing))
	byID := map[string]*Version{}
	for i, one := range existing {
		prices[i], byID[one.ID] = one.Price, one
	}
	placing, err := rating.Place(prices, v.Price, over)
	if err != nil {
		return nil, err
	}
	for _, old := range placing.Superseded {
		if _, err := t.Exec(ctx, `UPDATE price_version SET superseded_xid = pg_current_xact_id()
			WHERE id = $1`, old.ID); err != nil {
			return nil, fmt.Errorf("end price %s: %w", old.ID, err)
		}
	}
	for _, left := range placing.Kept {
		number++
		part := *byID[left.ID]
		part.Price, part.Number = left, number
		part.ID = string(ids.New(ids.PriceVersion))
		if _, err := insert(ctx, t, &part); err != nil {
			return nil, err
		}
	}
	v.ID, v.Number = string(ids.New(ids.PriceVersion)), number+1
	v.Origin = v.ID
	return insert(ctx, t, &v)
}

// onShelf locks and returns the versions that hold, and the highest number of any version of the shelf.
func onShelf(ctx context.Context, t *tx.Tx, shelf string) (versions []*Version, number int, err error) {
	found, err := t.Query(ctx, `SELECT `+Columns+` FROM price_version WHERE shelf = $1 AND superseded_xid IS NULL
		ORDER BY version FOR UPDATE`, shelf)
	if err != nil {
		return nil, 0, fmt.Errorf("read the prices of this kind: %w", err)
	}
	if versions, err = pgx.CollectRows(found, ScanVersion); err != nil {
		return nil, 0, fmt.Errorf("read the prices of this kind: %w", err)
	}
	err = t.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM price_version WHERE shelf = $1`, shelf).Scan(&number)
	return versions, number, err
}

func insert(ctx context.Context, t *tx.Tx, v *Version) (*Version, error) {
	var to *time.Time
	if !v.To.IsZero() {
		to = &v.To
	}
	found, err := t.Query(ctx, `INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, tenant_id,
		project_id,
			valid_from, valid_to, version, terms, hash, reason, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '', $14, $15)
		RETURNING `+Columns, v.ID, v.Origin, v.Meter,
		v.SKU, v.Region, v.Currency, string(v.Scope), v.TenantID, v.ProjectID, v.From, to, v.Number, encoded(v.Terms),
		v.Reason,
		v.CreatedBy)
	if err != nil {
		return nil, fmt.Errorf("write a price: %w", err)
	}
	stored, err := pgx.CollectExactlyOneRow(found, ScanVersion)
	if tx.Violates(err, "price_version_no_overlap") {
		return nil, fault.New(fault.PriceOverlap,
			"another request set a price of the same kind at the same time: read the "+
				"prices, and try again").At("input.validFrom").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("write a price: %w", err)
	}
	return stored, nil
}
