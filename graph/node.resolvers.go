package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func (r *computeNodeResolver) Isolation(ctx context.Context, obj *db.ComputeNode) (model.NodeIsolation, error) {
	panic(fmt.Errorf("not implemented: Isolation - isolation"))
}

func (r *mutationResolver) CreateNodeEnrolment(ctx context.Context, input model.CreateNodeEnrolmentInput) (*model.CreateNodeEnrolmentPayload, error) {
	panic(fmt.Errorf("not implemented: CreateNodeEnrolment - createNodeEnrolment"))
}

func (r *mutationResolver) EnrolNode(ctx context.Context, input model.EnrolNodeInput) (*model.EnrolNodePayload, error) {
	panic(fmt.Errorf("not implemented: EnrolNode - enrolNode"))
}

func (r *mutationResolver) RotateNodeCredential(ctx context.Context) (*model.NodeCredentialPayload, error) {
	panic(fmt.Errorf("not implemented: RotateNodeCredential - rotateNodeCredential"))
}

func (r *mutationResolver) NodeHeartbeat(ctx context.Context, input model.NodeHeartbeatInput) (*db.ComputeNode, error) {
	panic(fmt.Errorf("not implemented: NodeHeartbeat - nodeHeartbeat"))
}

func (r *mutationResolver) ReportNodeTask(ctx context.Context, input model.ReportNodeTaskInput) (*db.NodeTask, error) {
	panic(fmt.Errorf("not implemented: ReportNodeTask - reportNodeTask"))
}

func (r *mutationResolver) AppendNodeTaskOutput(ctx context.Context, input model.AppendNodeTaskOutputInput) (int, error) {
	panic(fmt.Errorf("not implemented: AppendNodeTaskOutput - appendNodeTaskOutput"))
}

func (r *mutationResolver) RunNodeTask(ctx context.Context, input model.RunNodeTaskInput) (*db.NodeTask, error) {
	panic(fmt.Errorf("not implemented: RunNodeTask - runNodeTask"))
}

func (r *mutationResolver) CancelNodeTask(ctx context.Context, taskID ids.ID) (*db.NodeTask, error) {
	panic(fmt.Errorf("not implemented: CancelNodeTask - cancelNodeTask"))
}

func (r *queryResolver) Nodes(ctx context.Context, first *int, after *string) (*model.ComputeNodeConnection, error) {
	panic(fmt.Errorf("not implemented: Nodes - nodes"))
}

func (r *queryResolver) NodeTask(ctx context.Context, id ids.ID, waitSeconds *int) (*db.NodeTask, error) {
	panic(fmt.Errorf("not implemented: NodeTask - nodeTask"))
}

func (r *queryResolver) NodeTasks(ctx context.Context, memberID ids.ID, first *int, after *string) (*model.NodeTaskConnection, error) {
	panic(fmt.Errorf("not implemented: NodeTasks - nodeTasks"))
}

func (r *subscriptionResolver) NodeTasks(ctx context.Context) (<-chan *db.NodeTask, error) {
	panic(fmt.Errorf("not implemented: NodeTasks - nodeTasks"))
}

func (r *Resolver) ComputeNode() exec.ComputeNodeResolver { return &computeNodeResolver{r} }

type computeNodeResolver struct{ *Resolver }
