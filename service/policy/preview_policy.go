package policy

import (
	"context"
	"errors"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxDenied bounds what a preview names; the totals count everything that was checked.
const maxDenied = 200

// errLooked ends the transaction of a preview, which writes nothing.
var errLooked = errors.New("only a preview")

// Preview returns what SetPolicy would do with an overlay: what it would refuse it for, and which instances,
// allocations, volumes and entitlements of the level could not be requested again under it. It checks the newest
// 5,000 of each kind. Key: policy.manage at the scope.
func (s *Service) Preview(ctx context.Context, in SetInput) (*Preview, error) {
	out := &Preview{Problems: []*fault.Reason{}, NewlyDenied: []*Impact{}}
	document, wrong := in.check()
	if wrong != nil && !fault.Is(wrong, fault.InvalidArgument) {
		return nil, wrong
	}
	var before, after *scene
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		*out = Preview{Problems: []*fault.Reason{}, NewlyDenied: []*Impact{}}
		at, err := placeOf(ctx, t, "previewPolicy", in)
		if err != nil {
			return err
		}
		if wrong != nil {
			out.Problems = pointers(fault.From(wrong).Reasons)
			return errLooked
		}
		_, problem, err := judge(ctx, t, at, in, document, false)
		if err != nil {
			return err
		}
		if problem != nil {
			out.Problems = pointers(problem.Reasons)
		}
		before, err = look(ctx, t, at)
		if err == nil {
			after = before.with(at, document)
			err = errLooked
		}
		return err
	})
	if !errors.Is(err, errLooked) {
		return nil, err
	}
	if after != nil {
		out.compare(before, after)
	}
	return out, nil
}

func pointers(reasons []fault.Reason) []*fault.Reason {
	out := make([]*fault.Reason, len(reasons))
	for i := range reasons {
		out[i] = &reasons[i]
	}
	return out
}

// compare checks everything there is under both policies.
func (p *Preview) compare(before, after *scene) {
	for _, one := range before.things {
		then, now := one.ask(before.effective(one.project)), one.ask(after.effective(one.project))
		switch {
		case then == nil && now != nil:
			p.deny(&Impact{ProjectID: one.project.ID, ObjectID: one.id, Name: one.name,
				Reasons: pointers(fault.From(now).Reasons)})
		case then != nil && now == nil:
			p.NewlyAllowedTotal++
		}
	}
	p.losing(before, after)
}

// losing names the projects' overlays with rules that would newly allow what is forbidden above them: they stay
// as they are, and the levels above prevail.
func (p *Preview) losing(before, after *scene) {
	for _, project := range before.projects {
		own := before.overlays[project.ID]
		if own == nil || slices.Contains(after.written, project.ID) {
			continue
		}
		then := policy.Widens(policy.Merge(before.above(project)...), own.Document)
		now := policy.Widens(policy.Merge(after.above(project)...), own.Document)
		if len(now) > len(then) {
			p.deny(&Impact{ProjectID: project.ID, ObjectID: own.OverlayID, Name: "the project's overlay",
				Reasons: pointers(now[:min(len(now), fault.MaxReasons)])})
		}
	}
}

func (p *Preview) deny(impact *Impact) {
	p.NewlyDeniedTotal++
	if len(p.NewlyDenied) < maxDenied {
		p.NewlyDenied = append(p.NewlyDenied, impact)
	}
}
