package lifecycle

import (
	"io"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// Values lists every InstanceStatus as it is stored and published.
func (InstanceStatus) Values() []string {
	return names(InstanceCreated, InstanceStarting, InstanceRunning, InstanceStopping, InstanceStopped, InstanceFailed)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s InstanceStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *InstanceStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every AllocationStatus as it is stored and published.
func (AllocationStatus) Values() []string {
	return names(AllocationRequested, AllocationReady, AllocationReleasing, AllocationReleased, AllocationFailed)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s AllocationStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *AllocationStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every CapacityShape as it is stored and published.
func (CapacityShape) Values() []string {
	return names(ShapeBaremetal, ShapeGPUSlice)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s CapacityShape) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *CapacityShape) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every MemberStatus as it is stored and published.
func (MemberStatus) Values() []string {
	return names(MemberPending, MemberJoining, MemberActive, MemberDraining, MemberDrained, MemberRemoving, MemberRemoved, MemberFailed)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s MemberStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *MemberStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every Stage as it is stored and published.
func (Stage) Values() []string {
	return names(StageDraft, StageStaged, StageCanary, StageActive, StageDeprecated, StageRetired)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s Stage) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *Stage) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OperationState as it is stored and published.
func (OperationState) Values() []string {
	return names(OperationPending, OperationRunning, OperationCanceling, OperationCompensating, OperationSucceeded, OperationFailed, OperationCanceled)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s OperationState) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OperationState) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OperationKind as it is stored and published.
func (OperationKind) Values() []string {
	return names(InstanceCreate, InstanceDecommission, InstanceUpgrade, InstanceRollback, MembersAdd, MemberDrain, MemberCordon, MemberUncordon, MemberLabel, MemberRemove, MemberReplace, MemberRecover, AllocationRelease)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s OperationKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OperationKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OperationScope as it is stored and published.
func (OperationScope) Values() []string {
	return names(ScopeInstance, ScopeMember, ScopeAllocation)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s OperationScope) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OperationScope) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every StepState as it is stored and published.
func (StepState) Values() []string {
	return names(StepPending, StepRunning, StepSucceeded, StepFailed, StepSkipped, StepUndoing, StepUndone)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s StepState) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *StepState) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every Outcome as it is stored and published.
func (Outcome) Values() []string {
	return names(OutcomeNormal, OutcomeForced, OutcomeUnverified)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s Outcome) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *Outcome) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every Owner as it is stored and published.
func (Owner) Values() []string {
	return names(OwnerAdapter, OwnerPlatform, OwnerUser, OwnerNode)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s Owner) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *Owner) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every NodeStatus as it is stored and published.
func (NodeStatus) Values() []string {
	return names(NodeOnline, NodeOffline, NodeRetired)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s NodeStatus) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *NodeStatus) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every NodeTaskState as it is stored and published.
func (NodeTaskState) Values() []string {
	return names(TaskPending, TaskRunning, TaskSucceeded, TaskFailed, TaskTimedOut, TaskCanceled)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s NodeTaskState) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *NodeTaskState) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every NodeTaskKind as it is stored and published.
func (NodeTaskKind) Values() []string { return names(nodetask.Kinds()...) }

// MarshalGQL writes the value to a GraphQL answer.
func (s NodeTaskKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *NodeTaskKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every Health as it is stored and published.
func (Health) Values() []string {
	return names(HealthHealthy, HealthDegraded, HealthUnhealthy, HealthUnknown)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s Health) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *Health) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OperatingMode as it is stored and published.
func (OperatingMode) Values() []string {
	return names(ModeTenantDedicated, ModePlatformManaged)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s OperatingMode) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OperatingMode) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every ControlPlaneScope as it is stored and published.
func (ControlPlaneScope) Values() []string {
	return names(ControlPlaneProject, ControlPlaneTenant)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s ControlPlaneScope) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *ControlPlaneScope) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every NodeIsolation as it is stored and published.
func (NodeIsolation) Values() []string {
	return names(IsolationNamespace, IsolationProcess)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s NodeIsolation) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *NodeIsolation) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OutputStream as it is stored and published.
func (OutputStream) Values() []string {
	return names(StreamStdout, StreamStderr)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s OutputStream) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OutputStream) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every ActionRisk as it is stored and published.
func (ActionRisk) Values() []string {
	return names(RiskRead, RiskWrite, RiskDestructive)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s ActionRisk) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *ActionRisk) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every DeadlineOutcome as it is stored and published.
func (DeadlineOutcome) Values() []string { return names(DeadlineFail, DeadlineForce) }

// MarshalGQL writes the value to a GraphQL answer.
func (s DeadlineOutcome) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *DeadlineOutcome) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every OrphanKind as it is stored and published.
func (OrphanKind) Values() []string { return names(OrphanNodeResidue, OrphanAllocation) }

// MarshalGQL writes the value to a GraphQL answer.
func (s OrphanKind) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *OrphanKind) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every PlanAction as it is stored and published.
func (PlanAction) Values() []string {
	return names(PlanAdd, PlanDrain, PlanRemove, PlanReplace, PlanRecover, PlanChange)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s PlanAction) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *PlanAction) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every VerdictSource as it is stored and published.
func (VerdictSource) Values() []string {
	return names(VerdictState, VerdictCompatibility, VerdictQuota, VerdictPolicy, VerdictAdapter)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s VerdictSource) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *VerdictSource) UnmarshalGQL(v any) error { return readGQL(s, v) }

// Values lists every VerdictOutcome as it is stored and published.
func (VerdictOutcome) Values() []string {
	return names(VerdictAllowed, VerdictRefused, VerdictUnknown)
}

// MarshalGQL writes the value to a GraphQL answer.
func (s VerdictOutcome) MarshalGQL(w io.Writer) { writeGQL(w, s) }

// UnmarshalGQL reads a GraphQL enum value; it fails with INVALID_ARGUMENT, listing the values.
func (s *VerdictOutcome) UnmarshalGQL(v any) error { return readGQL(s, v) }
