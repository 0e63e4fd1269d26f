package metering

import (
	"strconv"
	"time"
)

// VolumeGiBSeconds is the meter of volumes: the size that a project has requested, second by second, by storage class.
const VolumeGiBSeconds = "volume_gib_seconds"

// GiBSecond is its unit.
const GiBSecond = "GiB-second"

// VolumeSlice is the longest record of a volume. Records are cut at its multiples, and written once such a slice has
// passed: volumes outlast what uses them, and a record a minute of each would be most of the table.
const VolumeSlice = 10 * time.Minute

// DeletionWaits is why the platform bears seconds of a volume: its deletion was requested longer than WriteOff ago, and
// no node has proved it.
const DeletionWaits = "DELETION_WAITS"

// VolumeState is how a volume was from the moment of a fact on.
type VolumeState string

// The states of a volume that facts report. A volume that was never proved to exist has no fact.
const (
	VolumePresent  VolumeState = "PRESENT"  // a node has proved that it exists
	VolumeDeleting VolumeState = "DELETING" // its deletion was requested
	VolumeDeleted  VolumeState = "DELETED"  // a node has proved that nothing is left of it
	VolumeLost     VolumeState = "LOST"     // its only node was taken out for good
)

// ended reports whether nothing is metered from such a fact on.
func (s VolumeState) ended() bool { return s == VolumeDeleted || s == VolumeLost }

// deleting reports whether the deletion was requested by such a fact.
func (s VolumeState) deleting() bool { return s == VolumeDeleting }

// VolumeFact is what a volume was from a moment on.
type VolumeFact struct {
	At      time.Time
	State   VolumeState
	SizeGiB int
	// Class is the name of its storage class.
	Class string
}

// Volume is a volume with all that has happened to it since a node had first proved that it exists.
type Volume struct {
	ID, TenantID, ProjectID string
	// Facts are in their order.
	Facts []VolumeFact
}

// Meter returns the volume's records from a time on (zero for the beginning, or where the last call ended), of at most
// as many slices as the bound. It is a function of the facts: every caller, in whatever steps, gets the same records.
// The slice of the present moment is recorded once it has passed, or when the volume has ended in it.
func (v *Volume) Meter(from, now time.Time, bound int) Metered {
	if len(v.Facts) == 0 {
		return Metered{To: from}
	}
	start := second(v.Facts[0].At)
	if from.Before(start) {
		from = start
	}
	until, complete := second(now).Truncate(VolumeSlice), false
	if end := v.since(VolumeState.ended); !end.IsZero() {
		until, complete = end, true
	}
	if most := from.Truncate(VolumeSlice).Add(time.Duration(bound) * VolumeSlice); until.After(most) {
		until, complete = most, false
	}
	return recorded(cuts(from, until, VolumeSlice, v.changes()), v.record, complete)
}

// since is when it came to such a state first; zero when it did not.
func (v *Volume) since(such func(VolumeState) bool) time.Time {
	for _, fact := range v.Facts {
		if such(fact.State) {
			return second(fact.At)
		}
	}
	return time.Time{}
}

// changes are the moments at which something about it changes.
func (v *Volume) changes() (at []time.Time) {
	for _, fact := range v.Facts {
		at = append(at, fact.At)
	}
	if since := v.since(VolumeState.deleting); !since.IsZero() {
		at = append(at, since.Add(WriteOff))
	}
	return at
}

// record is that of one stretch, in which nothing changes. Of several facts in one second the last one counts.
func (v *Volume) record(from, to time.Time) Record {
	now := v.Facts[0]
	for _, fact := range v.Facts {
		if !second(fact.At).After(from) {
			now = fact
		}
	}
	r := Record{Source: v.ID, Meter: VolumeGiBSeconds, UsageID: from.Format(time.RFC3339), Basis: Storage,
		TenantID: v.TenantID, ProjectID: v.ProjectID, SKU: now.Class, Session: v.ID, Unit: GiBSecond,
		Quantity: strconv.Itoa(now.SizeGiB * int(to.Sub(from)/time.Second)), From: from, To: to, BorneBy: Tenant}
	if since := v.since(VolumeState.deleting); !since.IsZero() && !from.Before(since.Add(WriteOff)) {
		r.BorneBy, r.BorneReason, r.BorneOwner = Platform, DeletionWaits, "node"
	}
	return r
}
