package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxDimensions bounds how many manifests' dimensions are kept; beyond, all are read again.
const maxDimensions = 4_096

// Dimensions keeps the dimensions of manifests: a published manifest never changes. The zero value is ready.
type Dimensions struct {
	mu   sync.Mutex
	read map[ids.ID][]metering.Dimension
}

// Of returns the dimensions of a manifest's document; none of one that cannot be read.
func Of(document []byte) []metering.Dimension {
	declared, err := manifest.Stored(document)
	if err != nil {
		return nil
	}
	out := make([]metering.Dimension, len(declared.UsageDimensions))
	for i, one := range declared.UsageDimensions {
		out[i] = metering.Dimension{Name: one.Name, Unit: one.Unit, Kind: metering.DimensionKind(one.Kind)}
	}
	return out
}

// of returns the dimensions of manifests.
func (d *Dimensions) of(ctx context.Context, t *tx.Tx, wanted []ids.ID) (map[ids.ID][]metering.Dimension, error) {
	out := make(map[ids.ID][]metering.Dimension, len(wanted))
	var unread []ids.ID
	d.mu.Lock()
	for _, id := range wanted {
		if known, ok := d.read[id]; ok {
			out[id] = known
		} else {
			unread = append(unread, id)
		}
	}
	d.mu.Unlock()
	if len(unread) == 0 {
		return out, nil
	}
	found, err := t.Query(ctx, `SELECT id, document FROM manifest WHERE id = ANY ($1)`, unread)
	if err != nil {
		return nil, fmt.Errorf("read usage dimensions: %w", err)
	}
	var id ids.ID
	var document []byte
	_, err = pgx.ForEachRow(found, []any{&id, &document}, func() error { out[id] = Of(document); return nil })
	if err != nil {
		return nil, fmt.Errorf("read usage dimensions: %w", err)
	}
	d.keep(unread, out)
	return out, nil
}

// keep remembers what was read.
func (d *Dimensions) keep(fresh []ids.ID, read map[ids.ID][]metering.Dimension) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read == nil || len(d.read) > maxDimensions {
		d.read = make(map[ids.ID][]metering.Dimension)
	}
	for _, id := range fresh {
		if dimensions, ok := read[id]; ok {
			d.read[id] = dimensions
		}
	}
}

// Load reads what an instance's records are checked against; nil when the caller sees no such instance.
func (d *Dimensions) Load(ctx context.Context, t *tx.Tx, instance ids.ID) (*metering.Metering, error) {
	m := &metering.Metering{InstanceID: string(instance), Members: make(map[string]metering.Member)}
	var first ids.ID
	err := t.QueryRow(ctx, `SELECT tenant_id, project_id, created_at, manifest_id FROM instance
		WHERE id = $1`, instance).
		Scan(&m.TenantID, &m.ProjectID, &m.CreatedAt, &first)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", instance, err)
	}
	manifests, err := d.eras(ctx, t, instance, first, m)
	if err != nil {
		return nil, err
	}
	read, err := d.of(ctx, t, manifests)
	if err != nil {
		return nil, err
	}
	for i := range m.Eras {
		m.Eras[i].Dimensions = read[manifests[i]]
	}
	return m, members(ctx, t, instance, m.Members)
}

// eras reads which manifests the instance has run, and since when.
func (d *Dimensions) eras(ctx context.Context, t *tx.Tx, instance, first ids.ID, m *metering.Metering) ([]ids.ID,
	error) {
	found, err := t.Query(ctx, `SELECT manifest_id, created_at FROM instance_generation WHERE instance_id = $1
		ORDER BY number`, instance)
	if err != nil {
		return nil, fmt.Errorf("read the generations of %s: %w", instance, err)
	}
	var manifests []ids.ID
	var id ids.ID
	var at time.Time
	_, err = pgx.ForEachRow(found, []any{&id, &at}, func() error {
		manifests, m.Eras = append(manifests, id), append(m.Eras, metering.Era{Since: at})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the generations of %s: %w", instance, err)
	}
	if len(manifests) == 0 { // it is being launched
		manifests, m.Eras = append(manifests, first), append(m.Eras, metering.Era{})
	}
	m.Eras[0].Since = m.CreatedAt
	return manifests, nil
}

// members reads all that the instance has or has had.
func members(ctx context.Context, t *tx.Tx, instance ids.ID, into map[string]metering.Member) error {
	found, err := t.Query(ctx, `SELECT id, coalesce(allocation_id, ''), component_key FROM member
		WHERE instance_id = $1`, instance)
	if err != nil {
		return fmt.Errorf("read the members of %s: %w", instance, err)
	}
	var id string
	var member metering.Member
	_, err = pgx.ForEachRow(found, []any{&id, &member.AllocationID, &member.ComponentKey}, func() error {
		into[id] = member
		return nil
	})
	return err
}

// Taken counts what happened to the records that an adapter reported.
type Taken struct {
	// Recorded are new, Known were recorded before; Quarantined were not taken, Fresh of them for the first time.
	Recorded, Known, Quarantined, Fresh int
}

// Incoming is a record as it came.
type Incoming struct {
	metering.Sent
	// Raw is the JSON that it was read from.
	Raw []byte
	// Wrong is why it could not be read; nil when it could.
	Wrong *fault.Reason
}

// Read reads a record that came as JSON. For one that does not fit the contract, Wrong is set.
func Read(raw []byte) Incoming {
	in := Incoming{Raw: raw}
	if err := json.Unmarshal(raw, &in.Sent); err != nil {
		in.Wrong = &fault.Reason{Code: fault.BadValue, Message: "a field of the record has the wrong type"}
		var id struct{ ID, Dimension string }
		_ = json.Unmarshal(raw, &id) // what can be read of it names it
		in.Sent = metering.Sent{ID: id.ID, Dimension: id.Dimension}
	}
	return in
}

// Take records what an adapter reported of an instance, and puts in quarantine what is wrong. One bad record stops no
// other.
func Take(ctx context.Context, t *tx.Tx, m *metering.Metering, incoming []Incoming) (*Taken, error) {
	var records []metering.Record
	var from []int
	var refused []Refused
	refuse := func(i int, why fault.Reason) {
		refused = append(refused, Refused{TenantID: m.TenantID, ProjectID: m.ProjectID, Source: m.InstanceID,
			Incoming: incoming[i], Why: why})
	}
	for i := range incoming {
		record, wrong := (*metering.Record)(nil), incoming[i].Wrong
		if wrong == nil {
			record, wrong = m.Record(&incoming[i].Sent, t.Now)
		}
		if wrong != nil {
			refuse(i, *wrong)
			continue
		}
		records, from = append(records, *record), append(from, i)
	}
	added, err := Add(ctx, t, records)
	if err != nil {
		return nil, err
	}
	for _, n := range added.Reused {
		refuse(from[n], fault.Reason{Code: fault.UsageIDReused, Path: "id",
			Message: "id belongs to a record with other content"})
	}
	fresh, err := Quarantine(ctx, t, refused)
	return &Taken{Recorded: added.Recorded, Known: added.Known, Quarantined: len(refused), Fresh: fresh}, err
}
