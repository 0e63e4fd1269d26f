// Package health is the ledger of how instances and their members are: it writes that a member at rest was lost, and
// bounds the health of an instance by what the platform itself knows of its members.
package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// slack is how much is added to a finding's age: one that was read before an operation brought the member back, and
// arrives after it, must not fail the member. If the member is still lost, the next finding shows it.
const slack = 10 * time.Second

// Finding is what shows that a member was lost.
type Finding struct {
	MemberID ids.ID
	// NodeID is the node that found it; empty when no node did. A member of another node is left as it is.
	NodeID ids.ID
	Cause  lifecycle.MemberFailure
	// Message describes it to a person; empty for the cause's own text.
	Message string
	// Age is how long ago it was seen.
	Age time.Duration
}

// Fail makes a member FAILED that is at rest: in service in a running instance, with no operation open that works on
// it, and none that ended after the finding was seen. It reports whether it did.
func Fail(ctx context.Context, t *tx.Tx, finding Finding) (bool, error) {
	instance, err := lockInstance(ctx, t, finding.MemberID)
	if err != nil || instance == nil || instance.Status != lifecycle.InstanceRunning {
		return false, err
	}
	if resting, err := atRest(ctx, t, instance.ID, finding); err != nil || !resting {
		return false, err
	}
	member, err := t.Member.Query().Where(dbmember.ID(finding.MemberID)).ForUpdate().Only(ctx)
	if err != nil {
		return false, fmt.Errorf("lock member %s: %w", finding.MemberID, err)
	}
	if !member.Status.AtRest() || finding.NodeID != "" && (member.NodeID == nil || *member.NodeID != finding.NodeID) {
		return false, nil
	}
	return true, fail(ctx, t, instance, member, finding)
}

// lockInstance returns the locked instance of a member; nil for a member that does not exist.
func lockInstance(ctx context.Context, t *tx.Tx, memberID ids.ID) (*db.Instance, error) {
	var of ids.ID
	err := t.QueryRow(ctx, `SELECT instance_id FROM member WHERE id = $1`, memberID).Scan((*string)(&of))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find member %s: %w", memberID, err)
	}
	instance, err := t.Instance.Query().Where(dbinstance.ID(of)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", of, err)
	}
	return instance, nil
}

// endedSQL is when the newest operation ended that was the instance's or the member's.
const endedSQL = `SELECT max(ended_at) FROM operation WHERE instance_id = $1 AND ended_at IS NOT NULL
	AND (targets IS NULL OR targets = '[]' OR targets @> to_jsonb($2::text) OR desired_change->>'replacementId' = $2)`

// atRest reports whether no operation works on the member, and none ended after the finding was seen.
func atRest(ctx context.Context, t *tx.Tx, instanceID ids.ID, finding Finding) (bool, error) {
	open, err := operation.AllOpen(ctx, t, instanceID, false)
	if err != nil {
		return false, err
	}
	for _, op := range open {
		if op.Kind.Effects().Scope != lifecycle.ScopeMember || slices.Contains(operation.Touched(op),
			finding.MemberID) {
			return false, nil
		}
	}
	var ended *time.Time
	if err := t.QueryRow(ctx, endedSQL, instanceID, finding.MemberID).Scan(&ended); err != nil {
		return false, fmt.Errorf("find operations on member %s: %w", finding.MemberID, err)
	}
	return ended == nil || ended.Before(t.Now.Add(-finding.Age-slack)), nil
}

// fail writes the failure of a locked member, and what it makes of its instance.
func fail(ctx context.Context, t *tx.Tx, instance *db.Instance, member *db.Member, finding Finding) error {
	message := finding.Message
	if message == "" {
		message = finding.Cause.Rule().Text
	}
	_, err := t.Exec(ctx, `UPDATE member SET status = 'FAILED', health = 'UNHEALTHY', health_message = $2, failure = $3,
		failed_at = $4,
		updated_at = $4 WHERE id = $1`, member.ID, message, finding.Cause, t.Now)
	if err != nil {
		return fmt.Errorf("fail member %s: %w", member.ID, err)
	}
	if err := roles.Recount(ctx, t, instance.ID); err != nil {
		return err
	}
	err = event.Append(ctx, t, instance, event.Draft{
		Type: lifecycle.EventMemberFailed, MemberID: member.ID,
		Message: fmt.Sprintf("%s %d has failed: %s", member.ComponentKey, member.Ordinal, message),
		Payload: map[string]any{"componentKey": member.ComponentKey, "index": member.Ordinal,
			"status": lifecycle.MemberFailed,
			"health": lifecycle.HealthUnhealthy, "cause": finding.Cause, "foundBy": finding.Cause.Rule().FoundBy},
	})
	if err != nil {
		return err
	}
	t.Wake(event.FailedTopic)
	return Settle(ctx, t, instance)
}
