// Package feed holds the feeds that subscriptions watch: the timeline of an instance and the activity of a project.
package feed

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Sources returns the subscription fields that are served for many subscribers at once, by name.
func Sources(db *tx.DB, instances *instance.Service, feeds *event.Feeds) map[string]live.Source {
	return map[string]live.Source{
		"instanceTimeline": timelineSource{instances, feeds},
		"projectActivity":  activitySource{db, feeds},
	}
}

// timelineSource serves instanceTimeline.
type timelineSource struct {
	instances *instance.Service
	feeds     *event.Feeds
}

// Open authorises by reading the instance, and starts at the cursor.
func (s timelineSource) Open(ctx context.Context, arguments map[string]any) (*live.Opened, error) {
	id, err := idArgument(arguments, "instanceId", ids.Instance)
	if err != nil {
		return nil, err
	}
	if _, err := event.ParseInstanceCursor(textArgument(arguments, "after")); err != nil {
		return nil, err
	}
	if _, err := s.instances.Get(ctx, id, instance.Want{}); err != nil {
		return nil, err
	}
	start, err := s.feeds.ResumeInstance(ctx, id, textArgument(arguments, "after"))
	if err != nil {
		return nil, err
	}
	return &live.Opened{
		Feed: "i:" + string(id), Topic: event.InstanceTopic(id), Start: start, Position: event.InTimeline,
		Read: func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
			return s.feeds.Instance(ctx, id, after, limit)
		},
		Replay: func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
			found, err := s.instances.Events(ctx, id, page.Args{First: limit, After: event.InstanceCursor(after)})
			if err != nil {
				return nil, err
			}
			return found.Rows, nil
		},
		By: tx.CallerSubject(), // an instance stays, in its project
		Recheck: func(ctx context.Context) error {
			_, err := s.instances.Get(ctx, id, instance.Want{})
			return err
		},
	}, nil
}

// activitySource serves projectActivity.
type activitySource struct {
	db    *tx.DB
	feeds *event.Feeds
}

// Open authorises on the project, and starts at the cursor or now. Callers that may read different families share no
// group.
func (s activitySource) Open(ctx context.Context, arguments map[string]any) (*live.Opened, error) {
	id, err := idArgument(arguments, "projectId", ids.Project)
	if err != nil {
		return nil, err
	}
	families, err := s.families(ctx, id)
	if err != nil {
		return nil, err
	}
	start, err := s.start(ctx, id, textArgument(arguments, "after"))
	if err != nil {
		return nil, err
	}
	feed := "p:" + string(id)
	for _, family := range families {
		feed += " " + family
	}
	return &live.Opened{
		Feed: feed, Topic: event.ProjectTopic(id), Start: start, Position: event.PositionOf, Delayed: true,
		Read: func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
			return s.feeds.Project(ctx, id, families, after, limit)
		},
		Replay: func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
			var found []*event.Event
			_, err := s.db.Read(ctx, s.feeds.ProjectQueries(&found, id, families, after, limit)...)
			return found, err
		},
		By: tx.ProjectSubject(id), // a project may be deleted
		Recheck: func(ctx context.Context) error {
			now, err := s.families(ctx, id)
			if err == nil && !slices.Equal(now, families) {
				return fault.New(fault.PermissionRevoked,
					"what you may read in the project has changed; subscribe again")
			}
			return err
		},
	}, nil
}

// start returns the position of a cursor, and the newest one without a cursor.
func (s activitySource) start(ctx context.Context, id ids.ID, after string) (event.Position, error) {
	if after == "" {
		return s.feeds.Now(ctx)
	}
	return s.feeds.Resume(ctx, id, after)
}

// families returns the families whose events the caller may read in the project.
func (s activitySource) families(ctx context.Context, id ids.ID) ([]string, error) {
	var project *db.Project
	actor, err := s.db.Read(ctx, tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project
		WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if err := authz.RequireAny(actor, where, authz.FamilyKeys("instance.read")...); err != nil {
		return nil, err
	}
	var families []string
	for _, family := range authz.EventFamilies() {
		key, err := authz.EventKey(family)
		if err == nil && actor.AllowsOn(key, where) {
			families = append(families, family)
		}
	}
	return families, nil
}

// idArgument returns an id of a kind. INVALID_ARGUMENT at its name when it is not a string.
func idArgument(arguments map[string]any, name string, kind ids.Kind) (ids.ID, error) {
	text, err := graphql.UnmarshalString(arguments[name])
	if err != nil {
		return "", fault.New(fault.InvalidArgument, "an id is a string").At(name)
	}
	id, err := ids.Parse(kind, text)
	if err != nil {
		return "", fault.NoSuch().At(name)
	}
	return id, nil
}

// textArgument returns a string argument, and the empty string where it is missing.
func textArgument(arguments map[string]any, name string) string {
	text, _ := arguments[name].(string)
	return text
}
