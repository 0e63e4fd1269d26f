package stack

import (
	"context"

	"github.com/gpuaas/app-platform/rig/stack/edition"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// lab returns the project where an app's manifests are smoke-tested. What a test holds is released before the next.
func (s *Stack) lab(app App) string {
	if app.System != nil {
		return s.Demo.SystemLabProjectID
	}
	return s.Demo.LabProjectID
}

// home returns the project that an app is given to once it is published.
func (s *Stack) home(app App) string {
	if app.System != nil {
		return s.Demo.SystemProjectID
	}
	return s.Demo.ProjectID
}

// describe makes the manifest of a system app's controller the app's own.
func (a App) describe(document edition.Document) {
	if a.System == nil {
		return
	}
	for key, text := range map[string]string{"app": a.Slug, "displayName": a.System.Name, "summary": a.System.Summary,
		"docs": a.System.Docs} {
		document.Set(key, text)
	}
}

// operate has an instance of a system app run for the platform: an earlier run's, which comes back with its node as
// every other does, or else a new one.
func (s *Stack) operate(ctx context.Context, app App) error {
	known, err := gql.ListInstances(ctx, s.Operator, s.home(app), &gql.InstanceFilter{AppSlug: app.Slug,
		Statuses: []gql.InstanceStatus{gql.InstanceStatusCreated, gql.InstanceStatusStarting, gql.InstanceStatusRunning,
			gql.InstanceStatusStopping, gql.InstanceStatusFailed}}, 1, "")
	if err != nil || len(known.Instances.Edges) > 0 {
		return err
	}
	allocation, err := s.room(ctx, app)
	if err != nil {
		return err
	}
	s.say("launching %s for the platform", app.Slug)
	launch, err := gql.LaunchInstance(ctx, s.Operator, gql.LaunchInstanceInput{ProjectId: s.home(app),
		AppSlug: app.Slug, Name: app.Slug, AllocationIds: []string{allocation}, DeadlineSeconds: tryDeadline,
		Reason: "an app of the platform's own", IdempotencyKey: client.NewKey()})
	if err != nil {
		return err
	}
	return s.succeed(ctx, launch.LaunchInstance.Operation.Id)
}

// room returns the allocation of a system app: the one that an earlier instance has left, or a new one.
func (s *Stack) room(ctx context.Context, app App) (allocation string, err error) {
	held, err := gql.ListAllocations(ctx, s.Operator, s.home(app),
		[]gql.AllocationStatus{gql.AllocationStatusReady}, 100, "")
	if err != nil {
		return "", err
	}
	for _, edge := range held.Allocations.Edges {
		if edge.Node.Name == app.Slug {
			return edge.Node.Id, nil
		}
	}
	return s.rent(ctx, app, s.home(app), app.Slug)
}
