package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxDrift is the most differences that are kept of an instance.
const maxDrift = 256

// The kinds of difference.
const (
	instanceUnknown = "INSTANCE_UNKNOWN" // the adapter does not know the instance
	memberUnknown   = "MEMBER_UNKNOWN"   // a member that the adapter says nothing of, though it judges others
	memberStray     = "MEMBER_STRAY"     // something that the adapter sees and that is no member any more
	memberHomeless  = "MEMBER_HOMELESS"  // a member whose allocation was released
	maxStray        = 64                 // bytes of a stray's id that are told
)

// difference is one entry of an instance's drift, as it is stored.
type difference struct {
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	MemberID string    `json:"memberId,omitempty"`
	Since    time.Time `json:"since"`
}

// held is a member as the platform has it.
type held struct {
	ID         ids.ID
	Key        string
	Ordinal    int
	Status     lifecycle.MemberStatus
	Allocation *lifecycle.AllocationStatus
}

func (h held) name() string { return fmt.Sprintf("%s %d", h.Key, h.Ordinal) }

// settled reports whether the adapter is expected to know the member.
func (h held) settled() bool {
	return h.Status == lifecycle.MemberActive || h.Status == lifecycle.MemberDrained
}

// storeDrift compares what the adapter sees with what is meant, and keeps when it saw it. It answers
// whether the differences are others than before.
func storeDrift(ctx context.Context, t *tx.Tx, instance *db.Instance, seen observation) (changed bool, err error) {
	var members []held
	var open bool
	batch := &pgx.Batch{}
	batch.Queue(`SELECT m.id, m.component_key, m.ordinal, m.status, a.status FROM member m
		LEFT JOIN allocation a ON a.id = m.allocation_id
		WHERE m.instance_id = $1 AND NOT m.removed ORDER BY m.component_key,
		m.ordinal`, instance.ID).Query(func(found pgx.Rows) (err error) {
		members, err = pgx.CollectRows(found, pgx.RowToStructByPos[held])
		return err
	})
	batch.Queue(`SELECT EXISTS (SELECT FROM operation WHERE instance_id = $1 AND ended_at IS NULL)`, instance.ID).
		QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return false, fmt.Errorf("compare the members of %s: %w", instance.ID, err)
	}
	var before []difference
	_ = json.Unmarshal(instance.Drift, &before) // written here alone; what cannot be read is none
	list := compare(members, seen, open)
	lasting(list, before, t.Now)
	encoded, err := json.Marshal(list)
	if err != nil {
		return false, err
	}
	var kept []byte
	if len(list) > 0 {
		kept = encoded
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET observed_at = $2, drift = $3 WHERE id = $1`, instance.ID, t.Now,
		kept); err != nil {
		return false, fmt.Errorf("store what is seen of %s: %w", instance.ID, err)
	}
	again, err := json.Marshal(append([]difference{}, before...))
	return !bytes.Equal(encoded, again), err
}

// compare lists the differences, at most maxDrift. While an operation is open the adapter and the
// platform may know of it at different moments, so that members are not compared.
func compare(members []held, seen observation, open bool) []difference {
	list := []difference{}
	for _, one := range members {
		if one.Allocation != nil && *one.Allocation == lifecycle.AllocationReleased {
			list = append(list, difference{Code: memberHomeless, MemberID: string(one.ID),
				Message: one.name() + " lives in an allocation that was released"})
		}
	}
	switch {
	case open:
		return list
	case seen.unknown:
		return append(list, difference{Code: instanceUnknown, Message: "its adapter does not know the instance"})
	case len(seen.Members) == 0: // the adapter judges the whole alone
		return list
	}
	for _, one := range members {
		judged := slices.ContainsFunc(seen.Members, func(m adapter.MemberObservation) bool {
			return m.ID == string(one.ID)
		})
		if one.settled() && !judged {
			list = append(list, difference{Code: memberUnknown, MemberID: string(one.ID),
				Message: "its adapter does not report " + one.name() + ", though it reports others"})
		}
	}
	for _, other := range seen.Members {
		if slices.ContainsFunc(members, func(m held) bool { return other.ID == string(m.ID) }) {
			continue
		}
		list = append(list, stray(other.ID))
	}
	return list[:min(len(list), maxDrift)]
}

func stray(id string) difference {
	out := difference{Code: memberStray,
		Message: fmt.Sprintf("its adapter still reports %q, which is not a member of the instance",
			operation.Clip(id, maxStray))}
	if ids.ID(id).Is(ids.Member) {
		out.MemberID = id
	}
	return out
}

// lasting keeps since when each difference is known.
func lasting(list, before []difference, now time.Time) {
	for i := range list {
		list[i].Since = now
		for _, known := range before {
			if known.Code == list[i].Code && known.MemberID == list[i].MemberID && !known.Since.IsZero() {
				list[i].Since = known.Since
			}
		}
	}
}
