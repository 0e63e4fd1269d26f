package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/task"
)

func (r *computeNodeResolver) Isolation(ctx context.Context, obj *db.ComputeNode) (model.NodeIsolation, error) {
	return model.NodeIsolation(obj.Isolation), nil
}

func (r *mutationResolver) CreateNodeEnrolment(ctx context.Context, input model.CreateNodeEnrolmentInput) (*model.CreateNodeEnrolmentPayload, error) {
	secret, err := r.Nodes.CreateEnrolment(ctx, node.EnrolmentInput{Name: value(input.Name), TTLMinutes: input.TTLMinutes})
	if err != nil {
		return nil, err
	}
	return &model.CreateNodeEnrolmentPayload{Token: secret.Token, ExpiresAt: secret.ExpiresAt}, nil
}

func (r *mutationResolver) EnrolNode(ctx context.Context, input model.EnrolNodeInput) (*model.EnrolNodePayload, error) {
	enrolled, err := r.Nodes.Enrol(ctx, enrolInput(input))
	if err != nil {
		return nil, err
	}
	return &model.EnrolNodePayload{Node: enrolled.Node, Credential: enrolled.Token, ExpiresAt: enrolled.ExpiresAt}, nil
}

func (r *mutationResolver) RotateNodeCredential(ctx context.Context) (*model.NodeCredentialPayload, error) {
	secret, err := r.Nodes.Rotate(ctx)
	if err != nil {
		return nil, err
	}
	return &model.NodeCredentialPayload{Credential: secret.Token, ExpiresAt: secret.ExpiresAt}, nil
}

func (r *mutationResolver) NodeHeartbeat(ctx context.Context, input model.NodeHeartbeatInput) (*db.ComputeNode, error) {
	beat := node.HeartbeatInput{AgentVersion: input.AgentVersion, BootID: input.BootID}
	if input.Inventory != nil {
		changed := inventory(*input.Inventory)
		beat.Inventory = &changed
	}
	return r.Resolver.Nodes.Heartbeat(ctx, beat)
}

func (r *mutationResolver) ReportNodeTask(ctx context.Context, input model.ReportNodeTaskInput) (*db.NodeTask, error) {
	return r.Tasks.Report(ctx, task.ReportInput{
		TaskID: input.TaskID, Fence: input.Fence, State: input.State, ExitCode: input.ExitCode, Result: input.Result, Message: value(input.Message),
		ProgressDone: input.ProgressDone, ProgressTotal: input.ProgressTotal,
	})
}

func (r *mutationResolver) AppendNodeTaskOutput(ctx context.Context, input model.AppendNodeTaskOutputInput) (int, error) {
	return r.Tasks.Append(ctx, task.OutputInput{
		TaskID: input.TaskID, Fence: input.Fence, Stream: lifecycle.OutputStream(input.Stream), Offset: input.Offset, Data: input.Data,
	})
}

func (r *mutationResolver) RunNodeTask(ctx context.Context, input model.RunNodeTaskInput) (*db.NodeTask, error) {
	return r.Tasks.Run(ctx, task.RunInput{
		MemberID: input.MemberID, Kind: input.Kind, Spec: input.Spec, TimeoutSeconds: input.TimeoutSeconds, IdempotencyKey: input.IdempotencyKey,
	})
}

func (r *mutationResolver) CancelNodeTask(ctx context.Context, taskID ids.ID) (*db.NodeTask, error) {
	return r.Tasks.Cancel(ctx, taskID)
}

func (r *nodeTaskResolver) ProgressDone(ctx context.Context, obj *db.NodeTask) (float64, error) {
	return float64(obj.ProgressDone), nil
}

func (r *nodeTaskResolver) ProgressTotal(ctx context.Context, obj *db.NodeTask) (float64, error) {
	return float64(obj.ProgressTotal), nil
}

func (r *queryResolver) Nodes(ctx context.Context, first *int, after *string) (*model.ComputeNodeConnection, error) {
	args, err := page.Of(first, after, standardPage, page.Max)
	if err != nil {
		return nil, err
	}
	found, err := r.Resolver.Nodes.List(ctx, args)
	if err != nil {
		return nil, err
	}
	return &model.ComputeNodeConnection{Edges: edges(found, computeNodeEdge), PageInfo: pageInfo(found)}, nil
}

func (r *queryResolver) NodeTask(ctx context.Context, id ids.ID, waitSeconds *int) (*db.NodeTask, error) {
	return r.Tasks.Get(ctx, id, value(waitSeconds))
}

func (r *queryResolver) NodeTasks(ctx context.Context, memberID ids.ID, first *int, after *string) (*model.NodeTaskConnection, error) {
	args, err := page.Of(first, after, shortPage, page.Max)
	if err != nil {
		return nil, err
	}
	found, err := r.Tasks.List(ctx, memberID, args)
	if err != nil {
		return nil, err
	}
	return &model.NodeTaskConnection{Edges: edges(found, nodeTaskEdge), PageInfo: pageInfo(found)}, nil
}

func (r *subscriptionResolver) NodeTasks(ctx context.Context) (<-chan *db.NodeTask, error) {
	return r.Tasks.Follow(ctx, endWith(ctx))
}

func (r *Resolver) ComputeNode() exec.ComputeNodeResolver { return &computeNodeResolver{r} }

func (r *Resolver) NodeTask() exec.NodeTaskResolver { return &nodeTaskResolver{r} }

type (
	computeNodeResolver struct{ *Resolver }
	nodeTaskResolver    struct{ *Resolver }
)
