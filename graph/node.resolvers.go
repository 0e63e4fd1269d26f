package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/fleet"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/task"
)

func (r *mutationResolver) CordonNode(ctx context.Context, input fleet.OperateInput) (*db.ComputeNode, error) {
	return r.Resolver.Fleet.Cordon(ctx, input)
}

func (r *mutationResolver) UncordonNode(ctx context.Context, input fleet.OperateInput) (*db.ComputeNode, error) {
	return r.Resolver.Fleet.Uncordon(ctx, input)
}

func (r *mutationResolver) DrainNode(ctx context.Context, input fleet.DrainInput) (*db.ComputeNode, error) {
	return r.Resolver.Fleet.Drain(ctx, input)
}

func (r *mutationResolver) RetireNode(ctx context.Context, input fleet.RetireInput) (*db.ComputeNode, error) {
	return r.Resolver.Fleet.Retire(ctx, input)
}

func (r *mutationResolver) DeleteNode(ctx context.Context, input fleet.OperateInput) (ids.ID, error) {
	return r.Resolver.Fleet.Delete(ctx, input)
}

func (r *mutationResolver) CreateNodeEnrolment(ctx context.Context, input node.EnrolmentInput) (*model.CreateNodeEnrolmentPayload, error) {
	secret, err := r.Nodes.CreateEnrolment(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.CreateNodeEnrolmentPayload{Token: secret.Token, ExpiresAt: secret.ExpiresAt}, nil
}

func (r *mutationResolver) EnrolNode(ctx context.Context, input node.EnrolInput) (*model.EnrolNodePayload, error) {
	enrolled, err := r.Nodes.Enrol(ctx, input)
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

func (r *mutationResolver) NodeHeartbeat(ctx context.Context, input node.HeartbeatInput) (*db.ComputeNode, error) {
	return r.Resolver.Nodes.Heartbeat(ctx, input)
}

func (r *mutationResolver) ReportVolumes(ctx context.Context, input node.ReportVolumesInput) ([]ids.ID, error) {
	return r.Resolver.Nodes.ReportVolumes(ctx, input)
}

func (r *mutationResolver) ReportNodeTask(ctx context.Context, input task.ReportInput) (*db.NodeTask, error) {
	return r.Tasks.Report(ctx, input)
}

func (r *mutationResolver) AppendNodeTaskOutput(ctx context.Context, input task.OutputInput) (int, error) {
	return r.Tasks.Append(ctx, input)
}

func (r *mutationResolver) RunNodeTask(ctx context.Context, input task.RunInput) (*db.NodeTask, error) {
	return r.Tasks.Run(ctx, input)
}

func (r *mutationResolver) CancelNodeTask(ctx context.Context, taskID ids.ID) (*db.NodeTask, error) {
	return r.Tasks.Cancel(ctx, taskID)
}

func (r *nodeMemberResolver) Operation(ctx context.Context, obj *fleet.Member) (*operation.View, error) {
	return read.Maybe(ctx, read.Of(ctx).Operations, obj.OperationID)
}

func (r *nodeTaskResolver) ProgressDone(ctx context.Context, obj *db.NodeTask) (float64, error) {
	return float64(obj.ProgressDone), nil
}

func (r *nodeTaskResolver) ProgressTotal(ctx context.Context, obj *db.NodeTask) (float64, error) {
	return float64(obj.ProgressTotal), nil
}

func (r *queryResolver) Nodes(ctx context.Context, first *int, after *string) (*model.ComputeNodeConnection, error) {
	return read.List[model.ComputeNodeConnection](ctx, first, after, read.StandardPage, r.Resolver.Nodes.List)
}

func (r *queryResolver) NodeMembers(ctx context.Context, nodeID ids.ID, after *ids.ID) ([]*fleet.Member, error) {
	return r.Resolver.Fleet.Tenancy(ctx, nodeID, read.Value(after))
}

func (r *queryResolver) Fleet(ctx context.Context) (*fleet.Overview, error) {
	return r.Resolver.Fleet.Overview(ctx)
}

func (r *queryResolver) NodeNetwork(ctx context.Context, known string, waitSeconds int) (*nodenet.View, error) {
	return r.Resolver.Nodes.Network(ctx, known, waitSeconds)
}

func (r *queryResolver) NodeVolumes(ctx context.Context, known string, waitSeconds int) (*volume.Charges, error) {
	return r.Resolver.Nodes.Volumes(ctx, known, waitSeconds)
}

func (r *queryResolver) NodeTask(ctx context.Context, id ids.ID, waitSeconds *int) (*db.NodeTask, error) {
	return r.Tasks.Get(ctx, id, read.Value(waitSeconds))
}

func (r *queryResolver) NodeTasks(ctx context.Context, memberID ids.ID, first *int, after *string) (*model.NodeTaskConnection, error) {
	args, err := page.Of(first, after, read.ShortPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.NodeTaskConnection](r.Tasks.List(ctx, memberID, args))
}

func (r *subscriptionResolver) NodeTasks(ctx context.Context) (<-chan *db.NodeTask, error) {
	return r.Tasks.Follow(ctx, live.EndWith(ctx))
}

func (r *Resolver) NodeMember() exec.NodeMemberResolver { return &nodeMemberResolver{r} }

func (r *Resolver) NodeTask() exec.NodeTaskResolver { return &nodeTaskResolver{r} }

type (
	nodeMemberResolver struct{ *Resolver }
	nodeTaskResolver   struct{ *Resolver }
)
