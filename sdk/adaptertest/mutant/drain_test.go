package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func (r *run) drain(id string) error {
	if r.leads(id, "drain.each") {
		return errLeads
	}
	r.say(id, adapter.MemberDraining)
	if err := r.idle(id); err != nil {
		return err
	}
	r.set(func(s *adapter.Status) {
		if !r.t.broken("drain.completes") {
			s.Evidence = map[string]json.RawMessage{"running": json.RawMessage("0")}
		}
		r.member(id, adapter.MemberDrained)
	})
	return nil
}

// idle waits until no work is left on a member; with force it waits for none.
func (r *run) idle(id string) error {
	if r.t.broken("drain.asks") {
		return nil
	}
	look := adapter.RunCommand{Command: []string{"sh", "-c", `test ! -e "$GPUAAS_MEMBER_ROOT` + workPath + `"`}}
	for n := 0; ; n++ {
		err := r.step(id, fmt.Sprint("idle.", n), adapter.TaskRun, look)
		switch {
		case r.ctx.Err() != nil, err == nil:
			return err
		case r.d.Force, r.t.broken("drain.waits"):
			return nil
		case !errors.Is(err, errTask):
			return err
		}
		r.set(func(s *adapter.Status) {
			s.WaitsFor = []adapter.Work{{Kind: "work", ID: "work", Name: "work", MemberID: id, Message: "it works"}}
		})
		if !wait(r.ctx, 20*time.Millisecond) {
			return context.Cause(r.ctx)
		}
	}
}

// leads says whether a mutant fails at the member of the lowest index, which leads.
func (r *run) leads(id, clause string) bool {
	return r.t.broken(clause) && slices.ContainsFunc(r.d.Members, func(m adapter.Member) bool {
		return m.ID == id && m.Index == 0
	})
}

var errLeads = errors.New("the member leads, and nobody takes over")
