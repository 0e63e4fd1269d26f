package metering

import (
	"slices"
	"strconv"
	"time"
)

// Bounds of proof.
const (
	// Slice is the longest record of capacity. Records are cut at its multiples, so that the same seconds are the same
	// records, whichever process writes them and when.
	Slice = time.Minute
	// WriteOff is the longest silence of a node for which its agent can still prove usage when it is back. The platform
	// bears longer ones.
	WriteOff = time.Hour
	// margin is how much longer to wait before an open silence counts: a heartbeat may be under way.
	margin = 2 * time.Minute
)

// Why the platform bears seconds of an allocation.
const (
	FailedAdd    = "FAILED_ADD"    // the operation that had asked for the allocation has failed
	Orphaned     = "ORPHAN"        // an operation could not give it back
	Residue      = "RESIDUE"       // an operation left something behind in it
	NodeSilent   = "NODE_SILENT"   // its node's agent was silent for longer than WriteOff
	NodeRebooted = "NODE_REBOOTED" // its machine did not run all the time
	NodeLost     = "NODE_LOST"     // it has failed and was not released yet
)

// Reasons lists every reason for which the platform bears usage.
func Reasons() []string {
	return []string{FailedAdd, Orphaned, Residue, NodeSilent, NodeRebooted, NodeLost}
}

// FactKind is what a fact is about.
type FactKind string

// The kinds of fact.
const (
	StateFact      FactKind = "STATE"
	MemberInFact   FactKind = "MEMBER_IN"
	MemberOutFact  FactKind = "MEMBER_OUT"
	OrphanFact     FactKind = "ORPHAN"
	OrphanGoneFact FactKind = "ORPHAN_GONE"
)

// Fact is something that happened to an allocation.
type Fact struct {
	At   time.Time
	Kind FactKind
	// Of a state.
	Status, NodeID, InstanceID, SKU, Region string
	// Of a member.
	MemberID, ComponentKey, OperationID, CorrelationID string
	// Of an orphan.
	OrphanID, OrphanKind, Owner string
}

// Gap is a stretch of time without a heartbeat of a node.
type Gap struct {
	From, To time.Time
	// Rebooted says that another boot of the machine ended it.
	Rebooted bool
}

// Proof is what the agent of an allocation's node has proved.
type Proof struct {
	// At is the last heartbeat; zero for none.
	At time.Time
	// Gaps are the stretches before it without one, oldest first.
	Gaps []Gap
}

// Maker is the operation that requested an allocation.
type Maker struct {
	// EndedAt is zero while it goes on.
	EndedAt time.Time
	Failed  bool
}

// Allocation is capacity with all that has happened to it.
type Allocation struct {
	ID, TenantID, ProjectID string
	// GPUs is how many GPUs it holds; 0 for a whole node.
	GPUs int
	// Maker is the operation that requested it; nil when a person did.
	Maker *Maker
	// Facts are in their order.
	Facts []Fact
	// Proof is of its node.
	Proof Proof
}

// Metered is what is known of an allocation's capacity.
type Metered struct {
	// Records are those from the time given on, in order.
	Records []Record
	// To is until when every second is recorded; zero when nothing is.
	To time.Time
	// Ended says that no further record follows.
	Ended bool
}

// Meter returns the allocation's records from a time on (zero for the beginning, or where the last call ended), of at
// most as many slices as the bound. It is a function of what is proved: every caller, in whatever steps, gets the same
// records. No second is in two of them, and none is later than its proof.
func (a *Allocation) Meter(from, now time.Time, bound int) Metered {
	start, end := a.begun(), a.released()
	if start.IsZero() || (!end.IsZero() && !start.Before(end)) {
		return Metered{To: from, Ended: !end.IsZero() && a.settled(end, now)}
	}
	until, complete := a.proved(end, now)
	if a.Maker != nil && a.Maker.EndedAt.IsZero() {
		until, complete = start, false // who bears it is not known yet
	}
	if from.Before(start) {
		from = start
	}
	if most := from.Truncate(Slice).Add(time.Duration(bound) * Slice); until.After(most) {
		until, complete = most, false
	}
	return recorded(cuts(from, until, Slice, a.changes(until)), a.record, complete)
}

// recorded are the records between cuts.
func recorded(cuts []time.Time, record func(from, to time.Time) Record, complete bool) Metered {
	out := Metered{To: cuts[0], Ended: complete}
	for i := 1; i < len(cuts); i++ {
		out.Records, out.To = append(out.Records, record(cuts[i-1], cuts[i])), cuts[i]
	}
	return out
}

// cuts are where records begin and end, from start to the last one that is known by until: at the moments of changes,
// and at the multiples of a slice.
func cuts(start, until time.Time, slice time.Duration, changes []time.Time) []time.Time {
	cuts := []time.Time{start}
	add := func(at time.Time) {
		if at = second(at); at.After(start) && !at.After(until) {
			cuts = append(cuts, at)
		}
	}
	for _, at := range changes {
		add(at)
	}
	for at := start.Truncate(slice).Add(slice); !at.After(until); at = at.Add(slice) {
		add(at)
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

// second is the whole second that a moment lies in.
func second(at time.Time) time.Time { return at.UTC().Truncate(time.Second) }

// begun is the first moment, from which it was ready on, at which its node's agent had proved that it ran; zero for
// none.
func (a *Allocation) begun() time.Time {
	i := slices.IndexFunc(a.Facts, func(f Fact) bool { return f.Kind == StateFact && f.Status == "READY" })
	if i < 0 || a.Proof.At.Before(a.Facts[i].At) {
		return time.Time{}
	}
	at := a.Facts[i].At
	for _, gap := range a.Proof.Gaps {
		if gap.From.Before(at) && gap.To.After(at) {
			at = gap.To
		}
	}
	return second(at)
}

// released is when its release was proved; zero while it is held.
func (a *Allocation) released() time.Time {
	for _, fact := range a.Facts {
		if fact.Kind == StateFact && fact.Status == "RELEASED" {
			return second(fact.At)
		}
	}
	return time.Time{}
}

// settled reports whether no later heartbeat can change what is known of the time before the end.
func (a *Allocation) settled(end, now time.Time) bool {
	return !a.Proof.At.Before(end) || a.Proof.At.IsZero() || now.Sub(a.Proof.At) > WriteOff+margin
}

// proved is until when every second is known, and whether that is the end of all.
func (a *Allocation) proved(end, now time.Time) (until time.Time, complete bool) {
	limit := second(now)
	if !end.IsZero() {
		limit = end
	}
	if !a.settled(limit, now) {
		return second(a.Proof.At), false
	}
	return limit, !end.IsZero()
}

// changes are the moments at which something about it changes, as far as is known by until.
func (a *Allocation) changes(until time.Time) (at []time.Time) {
	for _, fact := range a.Facts {
		at = append(at, fact.At)
	}
	for _, gap := range a.Proof.Gaps {
		at = append(at, gap.From, gap.To)
	}
	if a.Maker != nil {
		at = append(at, a.Maker.EndedAt)
	}
	if !a.Proof.At.IsZero() && second(a.Proof.At).Before(until) {
		at = append(at, a.Proof.At) // it was silent from then on for so long that it is written off
	}
	return at
}

// record is that of one stretch, in which nothing changes.
func (a *Allocation) record(from, to time.Time) Record {
	now := a.at(from)
	count, meter := int(to.Sub(from)/time.Second), NodeSeconds
	if a.GPUs > 0 {
		count, meter = count*a.GPUs, GPUSeconds
	}
	r := Record{Source: a.ID, Meter: meter, UsageID: from.Format(time.RFC3339), Basis: Capacity, TenantID: a.TenantID,
		ProjectID: a.ProjectID, InstanceID: now.state.InstanceID, AllocationID: a.ID, SKU: now.state.SKU,
		Region: now.state.Region, Session: a.ID, Unit: Second, Quantity: strconv.Itoa(count), From: from, To: to}
	if len(now.members) == 1 {
		one := now.members[0]
		r.MemberID, r.ComponentKey, r.OperationID, r.CorrelationID = one.MemberID, one.ComponentKey, one.OperationID,
			one.CorrelationID
	}
	r.BorneReason, r.BorneOwner = a.borne(from, &now)
	r.BorneBy = Tenant
	if r.BorneReason != "" {
		r.BorneBy = Platform
	}
	return r
}

// standing is how an allocation stood in one second.
type standing struct {
	state   Fact
	members []Fact
	orphans []Fact
}

// at is how it stood in the second that begins at a time.
func (a *Allocation) at(when time.Time) (out standing) {
	for _, fact := range a.Facts {
		if second(fact.At).After(when) {
			break
		}
		switch fact.Kind {
		case StateFact:
			out.state = fact
		case MemberInFact:
			out.members = append(out.members, fact)
		case MemberOutFact:
			out.members = slices.DeleteFunc(out.members, func(f Fact) bool { return f.MemberID == fact.MemberID })
		case OrphanFact:
			out.orphans = append(out.orphans, fact)
		case OrphanGoneFact:
			out.orphans = slices.DeleteFunc(out.orphans, func(f Fact) bool { return f.OrphanID == fact.OrphanID })
		}
	}
	return out
}

// borne is why the platform bears a second, and who can mend it; empty for the tenant's.
func (a *Allocation) borne(from time.Time, now *standing) (reason, owner string) {
	if reason := a.silent(from); reason != "" {
		return reason, "node"
	}
	failed := a.Maker != nil && a.Maker.Failed
	switch {
	case now.state.Status == "FAILED":
		return NodeLost, "node"
	case failed && from.Before(second(a.Maker.EndedAt)):
		return FailedAdd, "platform"
	case len(now.members) > 0:
		return "", ""
	case len(now.orphans) > 0 && now.orphans[0].OrphanKind == "NODE_RESIDUE":
		return Residue, now.orphans[0].Owner
	case len(now.orphans) > 0:
		return Orphaned, now.orphans[0].Owner
	case failed:
		return FailedAdd, "platform"
	}
	return "", ""
}

// silent is why a second without a heartbeat is the platform's; empty for one that the agent answers for.
func (a *Allocation) silent(from time.Time) string {
	for _, gap := range a.Proof.Gaps {
		switch {
		case from.Before(second(gap.From)) || !from.Before(second(gap.To)):
		case gap.To.Sub(gap.From) > WriteOff:
			return NodeSilent
		case gap.Rebooted:
			return NodeRebooted
		}
	}
	if !from.Before(second(a.Proof.At)) {
		return NodeSilent
	}
	return ""
}
