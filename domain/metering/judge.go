package metering

import (
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Bounds of what an adapter reports.
const (
	// MaxID is the most bytes of a record's id and of its session.
	MaxID = 200
	// MaxAhead is how far a record may lie in the future: two clocks differ.
	MaxAhead = 5 * time.Minute
	// MaxBatch is the most records of one report or page.
	MaxBatch = 1000
)

// Sent is a record as an adapter reports it.
type Sent struct {
	ID        string    `json:"id"`
	Dimension string    `json:"dimension"`
	Quantity  string    `json:"quantity"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	MemberID  string    `json:"memberId,omitempty"`
	Session   string    `json:"session,omitempty"`
	Retracts  string    `json:"retracts,omitempty"`
}

// Era is a time in which an instance ran one manifest.
type Era struct {
	// Since is when it began; it ended when the next one did.
	Since      time.Time
	Dimensions []Dimension
}

// Member is a member that a record may be about.
type Member struct{ AllocationID, ComponentKey string }

// Metering is what an instance's records are checked against.
type Metering struct {
	InstanceID, TenantID, ProjectID string
	CreatedAt                       time.Time
	// Eras are the manifests that it has run, oldest first.
	Eras []Era
	// Members are all that it has or has had, by id.
	Members map[string]Member
}

// Metered reports whether the instance has ever run a manifest with a dimension.
func (m *Metering) Metered() bool {
	for _, era := range m.Eras {
		if len(era.Dimensions) > 0 {
			return true
		}
	}
	return false
}

// Record checks a record that was sent and returns it as it is stored, or why it is not taken: a code of the catalogue
// and the field of the record.
func (m *Metering) Record(sent *Sent, now time.Time) (*Record, *fault.Reason) {
	if wrong := sent.shape(); wrong != nil {
		return nil, wrong
	}
	switch {
	case sent.To.After(now.Add(MaxAhead)):
		return nil, refuse(fault.UsageInFuture, "to", "is in the future: report only what has been used")
	case second(sent.From).Before(second(m.CreatedAt)):
		return nil, refuse(fault.UsageBeforeInstance, "from", "is before the instance was created")
	}
	dimension, wrong := m.dimension(sent)
	if wrong != nil {
		return nil, wrong
	}
	member, known := m.Members[sent.MemberID]
	if sent.MemberID != "" && !known {
		return nil, refuse(fault.UnknownValue, "memberId", "is not a member of the instance")
	}
	return &Record{Source: m.InstanceID, Meter: dimension.Name, UsageID: sent.ID, Basis: dimension.Basis(),
		TenantID: m.TenantID, ProjectID: m.ProjectID, InstanceID: m.InstanceID, AllocationID: member.AllocationID,
		MemberID: sent.MemberID, ComponentKey: member.ComponentKey,
		Session: first(sent.Session, sent.MemberID, m.InstanceID),
		Unit:    dimension.Unit, Quantity: Decimal(sent.Quantity), From: sent.From.UTC().Truncate(time.Microsecond),
		To: sent.To.UTC().Truncate(time.Microsecond), Retracts: sent.Retracts, BorneBy: Tenant}, nil
}

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// refuse is why a record is not taken.
func refuse(code fault.Code, field, message string) *fault.Reason {
	return &fault.Reason{Code: code, Path: field, Message: field + " " + message}
}

// shape refuses what is wrong with a record by itself.
func (s *Sent) shape() *fault.Reason {
	for _, text := range []struct{ field, value string }{
		{"id", s.ID}, {"session", s.Session}, {"retracts", s.Retracts}, {"dimension", s.Dimension},
	} {
		switch {
		case len(text.value) > MaxID:
			return refuse(fault.TooLong, text.field, "is longer than 200 bytes")
		case strings.ContainsRune(text.value, 0) || strings.ToValidUTF8(text.value, "") != text.value:
			return refuse(fault.BadValue, text.field, "is not text")
		}
	}
	negative := strings.HasPrefix(Decimal(s.Quantity), "-")
	switch {
	case s.ID == "":
		return refuse(fault.Required, "id", "is missing: derive it from what is counted")
	case !IsDecimal(s.Quantity):
		return refuse(fault.UsageQuantity, "quantity",
			"must be a decimal number of at most 26 digits, and 12 after the point")
	case negative && s.Retracts == "":
		return refuse(fault.UsageQuantity, "quantity", "is negative: only a record that retracts another may be")
	case !negative && s.Retracts != "" && Decimal(s.Quantity) != "0":
		return refuse(fault.UsageQuantity, "quantity", "is positive, though the record retracts another")
	case s.Retracts != "" && s.Retracts == s.ID:
		return refuse(fault.BadValue, "retracts", "is the record's own id")
	case s.From.IsZero() || s.To.IsZero() || s.To.Before(s.From):
		return refuse(fault.BadValue, "to", "and from must be times, and to not before from")
	}
	return nil
}

// dimension is the one that the record is of, as it was declared when what it counts began.
func (m *Metering) dimension(sent *Sent) (Dimension, *fault.Reason) {
	retired := false
	for i, era := range m.Eras {
		ended := i+1 < len(m.Eras) && !sent.From.Before(m.Eras[i+1].Since)
		for _, one := range era.Dimensions {
			switch {
			case one.Name != sent.Dimension:
			case ended:
				retired = true
			case !second(sent.To).Before(second(era.Since)): // the second is whole, as for the instance's creation
				return one, nil
			}
		}
	}
	if retired {
		return Dimension{}, refuse(fault.DimensionRetired, "dimension", "was not declared any more when this was used")
	}
	return Dimension{}, refuse(fault.DimensionUnknown, "dimension", "is not declared in the instance's manifest")
}
