package endpoint

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Health is whether an endpoint answers, as the platform has just tried it.
type Health struct {
	// Status is HEALTHY when every member that was tried answers, DEGRADED when some do, UNHEALTHY when none does, and
	// UNKNOWN when no member is in service or none can be reached.
	Status lifecycle.Health
	// Message says how many answer, and why one does not.
	Message string
}

const (
	// MaxTried is how many members of an endpoint are tried.
	MaxTried = 4
	// tryPatience is how long they have to answer.
	tryPatience = 2 * time.Second
)

const servingSQL = `SELECT ` + rows.MemberColumns + ` FROM member WHERE instance_id = $1 AND component_key = $2
	AND node_id IS NOT NULL AND status = 'ACTIVE' ORDER BY ordinal LIMIT $3`

// Health tries an endpoint at the first members in service, all at once, or at the one that it is read of. Whoever may
// read the instance may ask.
func (s *Service) Health(ctx context.Context, of *View) (*Health, error) {
	members, err := s.serving(ctx, of)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 || s.Try == nil {
		return &Health{Status: lifecycle.HealthUnknown, Message: "no member is in service"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	tried := make([]error, len(members))
	var all sync.WaitGroup
	for i, member := range members {
		all.Go(func() {
			tried[i] = s.Try(ctx, &Target{Instance: of.instance, Endpoint: of.declared, MemberID: member.ID,
				NodeID: *member.NodeID})
		})
	}
	all.Wait()
	return judge(members, tried), nil
}

// serving returns the members that are tried.
func (s *Service) serving(ctx context.Context, of *View) (members []*db.Member, err error) {
	switch {
	case of.member == nil:
		_, err = s.DB.Read(ctx, tx.Rows(&members, rows.Member, servingSQL, of.instance.ID, of.ComponentKey, MaxTried))
	case of.member.Status == lifecycle.MemberActive && of.member.NodeID != nil:
		members = []*db.Member{of.member}
	}
	return members, err
}

// judge says what the tries come to.
func judge(members []*db.Member, tried []error) *Health {
	answered, away, why := 0, 0, ""
	for i, err := range tried {
		if err == nil {
			answered++
			continue
		}
		reason := "it cannot be reached"
		if refused, ok := fault.As(err); ok {
			reason = refused.Message
			if refused.Code == fault.NodeUnreachable {
				away++
			}
		}
		if why == "" {
			why = fmt.Sprintf("; member %s: %s", members[i].ID, reason)
		}
	}
	out := &Health{Status: lifecycle.HealthUnhealthy,
		Message: fmt.Sprintf("%d of %d members answer%s", answered, len(tried), why)}
	switch {
	case answered == len(tried):
		out.Status = lifecycle.HealthHealthy
	case answered > 0:
		out.Status = lifecycle.HealthDegraded
	case away == len(tried):
		out.Status = lifecycle.HealthUnknown
	}
	return out
}
