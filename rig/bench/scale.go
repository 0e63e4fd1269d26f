package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// scaleBar is how much longer a query may take on ten times the data.
const scaleBar = 1.3

// Each query runs so often a round, over so many projects in turn.
const (
	scaleAsked    = 200
	scaleProjects = 16
	scaleBacklog  = 2_000 // operations that wait while some are claimed
	scaleClaimed  = 8     // at once
)

// scaled is one of the two data sets, opened as the platform opens it.
type scaled struct {
	set     *dataset.Set
	db      *tx.DB
	feeds   *event.Feeds
	callers []context.Context // who may read a project each
	numbers []int             // those projects
}

// measureScale asks the queries that everything rests on of two sets, one ten times the other: a page
// of each is as long in both, and as many projects wait in both. The sets take turns at every query.
func measureScale(ctx context.Context, b *bench) error {
	var sides [2]*scaled
	projects := min(b.Plan.Scale[0].ProjectsInAll(), b.Plan.Scale[1].ProjectsInAll())
	for i, size := range b.Plan.Scale {
		set, err := b.Set.Beside(ctx, dataset.Config{Size: size, Log: b.Log})
		if err != nil {
			return err
		}
		defer set.Close()
		if sides[i], err = openScaled(ctx, set); err != nil {
			return err
		}
		defer sides[i].db.Close()
		if _, err := set.Backlog(ctx, min(b.Plan.Backlog, scaleBacklog), 0, projects); err != nil {
			return err
		}
	}
	for _, one := range scaleQueries {
		times := &kit.Pairs{}
		for round := range b.Plan.Rounds + 1 {
			small, large, err := inTurns(ctx, sides, one.ask)
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			if round > 0 { // the first warms up
				times.Other, times.Platform = append(times.Other, float64(small)),
					append(times.Platform, float64(large))
			}
		}
		sizes := fmt.Sprintf("%d instances and %d events beside %d and %d", b.Plan.Scale[1].Instances,
			b.Plan.Scale[1].Instances*b.Plan.Scale[1].Events,
			b.Plan.Scale[0].Instances, b.Plan.Scale[0].Instances*b.Plan.Scale[0].Events)
		b.Sheet.AtMost(one.name+", "+sizes, kit.Millis(time.Duration(kit.Median(times.Platform))),
			kit.Millis(time.Duration(kit.Median(times.Other))), times.Ratio(), scaleBar)
	}
	return nil
}

func openScaled(ctx context.Context, set *dataset.Set) (s *scaled, err error) {
	if err := authz.Load(); err != nil {
		return nil, err
	}
	s = &scaled{set: set}
	if s.db, err = tx.Open(ctx, set.DSN, tx.Options{Connections: 2}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.db.Close()
		}
	}()
	callers, err := set.Callers(ctx, min(scaleProjects, set.Size.ProjectsInAll()))
	if err != nil {
		return nil, err
	}
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		return nil, err
	}
	for _, one := range callers {
		credential, err := tx.ParseCredential(one.Token, ring, s.db.Now())
		if err != nil {
			return nil, err
		}
		s.callers, s.numbers = append(s.callers, tx.WithCredential(ctx, credential)), append(s.numbers, one.Number)
	}
	s.feeds, err = event.NewFeeds(ctx, s.db.Worker())
	return s, err
}

// inTurns asks both sides in turns and answers the median of each.
func inTurns(ctx context.Context, sides [2]*scaled, ask func(ctx context.Context, s *scaled, n int) error) (small,
	large time.Duration, err error) {
	var took [2][]time.Duration
	for n := range scaleAsked {
		for i := range sides {
			began := time.Now()
			if err := ask(ctx, sides[i], n); err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	return load.Quantile(took[0], 0.5), load.Quantile(took[1], 0.5), nil
}

// of returns the n-th project in turn: a caller that may read it, and its number.
func (s *scaled) of(n int) (as context.Context, number int) {
	return s.callers[n%len(s.callers)], s.numbers[n%len(s.numbers)]
}

// some returns an instance of the n-th project in turn, and a caller that may read it.
func (s *scaled) some(n int) (as context.Context, instance ids.ID) {
	as, number := s.of(n)
	mine := s.set.Size.InstancesOf(number)
	return as, dataset.Instance(mine[n/len(s.callers)%len(mine)])
}

// scaleQueries are the queries that are measured.
var scaleQueries = []struct {
	name string
	ask  func(ctx context.Context, s *scaled, n int) error
}{
	{fmt.Sprintf("a claim of %d and the next due", scaleClaimed), func(ctx context.Context, s *scaled, _ int) error {
		worker := ids.New(ids.Worker)
		if _, _, err := queue.Claim(ctx, s.db.Worker(), worker, queue.Want{Limit: scaleClaimed}); err != nil {
			return err
		}
		return queue.HandOver(ctx, s.db.Worker(), worker)
	}},
	{"first 50 instances of a project", func(_ context.Context, s *scaled, n int) error {
		as, number := s.of(n)
		_, err := (&instance.Service{DB: s.db}).List(as, dataset.Project(number), instance.Filter{LastOperations: true},
			page.Args{First: 50})
		return err
	}},
	{"first 50 operations of a project", func(_ context.Context, s *scaled, n int) error {
		as, number := s.of(n)
		_, err := operation.List(as, s.db, operation.Filter{ProjectID: dataset.Project(number)}, page.Args{First: 50})
		return err
	}},
	{"operations of an instance", func(_ context.Context, s *scaled, n int) error {
		as, id := s.some(n)
		_, err := operation.List(as, s.db, operation.Filter{InstanceID: id}, page.Args{First: 50})
		return err
	}},
	{"first 50 events of a timeline", func(_ context.Context, s *scaled, n int) error {
		as, id := s.some(n)
		_, err := (&instance.Service{DB: s.db}).Events(as, id, page.Args{First: 50})
		return err
	}},
	{"100 events of a project's feed", func(ctx context.Context, s *scaled, n int) error {
		_, number := s.of(n)
		_, err := s.feeds.Project(ctx, dataset.Project(number), []string{"apps"}, event.Position{}, 100)
		return err
	}},
}
