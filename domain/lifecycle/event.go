package lifecycle

// EventType names an entry of a timeline. It is stored and published as spelled here; the list only ever grows.
type EventType string

// The types of event. The first five are the domain events that other systems rely on.
const (
	EventInstanceRequested      EventType = "apps.instance.requested"
	EventInstanceRunning        EventType = "apps.instance.running"
	EventInstanceFailed         EventType = "apps.instance.failed"
	EventInstanceDeleting       EventType = "apps.instance.deleting"
	EventInstanceDeleted        EventType = "apps.instance.deleted"
	EventInstanceStarting       EventType = "apps.instance.starting"
	EventInstanceStartCompleted EventType = "apps.instance.start_completed"
	EventInstanceHealthy        EventType = "apps.instance.healthy"
	EventInstanceDegraded       EventType = "apps.instance.degraded"
	EventInstanceUnhealthy      EventType = "apps.instance.unhealthy"
	EventInstanceRepairStopped  EventType = "apps.instance.repair_stopped"
	EventInstanceUpgraded       EventType = "apps.instance.upgraded"
	EventInstanceRolledBack     EventType = "apps.instance.rolled_back"
	EventMemberAdded            EventType = "apps.instance.member_added"
	EventMemberDrained          EventType = "apps.instance.member_drained"
	EventMemberRemoved          EventType = "apps.instance.member_removed"
	EventMemberFailed           EventType = "apps.instance.member_failed"
	EventMemberChanged          EventType = "apps.instance.member_changed"
	EventMemberOutOfMemory      EventType = "apps.instance.member_out_of_memory"
	EventMemberRestarted        EventType = "apps.instance.member_restarted"
	EventActionInvoked          EventType = "apps.instance.action_invoked"
	EventControlPlaneOffered    EventType = "apps.instance.control_plane_offered"
	EventControlPlaneAttached   EventType = "apps.instance.control_plane_attached"
	EventControlPlaneDeclined   EventType = "apps.instance.control_plane_declined"
	EventControlPlaneWithdrawn  EventType = "apps.instance.control_plane_withdrawn"
	EventControlPlaneDetached   EventType = "apps.instance.control_plane_detached"
	EventOperationAccepted      EventType = "apps.operation.accepted"
	EventOperationStarted       EventType = "apps.operation.started"
	EventOperationProgress      EventType = "apps.operation.progress"
	EventOperationCanceling     EventType = "apps.operation.canceling"
	EventOperationCompensating  EventType = "apps.operation.compensating"
	EventOperationSucceeded     EventType = "apps.operation.succeeded"
	EventOperationFailed        EventType = "apps.operation.failed"
	EventOperationCanceled      EventType = "apps.operation.canceled"
	EventAllocationRequested    EventType = "apps.allocation.requested"
	EventAllocationReady        EventType = "apps.allocation.ready"
	EventAllocationReleasing    EventType = "apps.allocation.releasing"
	EventAllocationReleased     EventType = "apps.allocation.released"
	EventAllocationFailed       EventType = "apps.allocation.failed"
	EventVolumeCreated          EventType = "apps.volume.created"
	EventVolumeReady            EventType = "apps.volume.ready"
	EventVolumeResized          EventType = "apps.volume.resized"
	EventVolumeDeleting         EventType = "apps.volume.deleting"
	EventVolumeDeleted          EventType = "apps.volume.deleted"
	EventVolumeFailed           EventType = "apps.volume.failed"
	EventArtifactFetching       EventType = "apps.artifact.fetching"
	EventArtifactFetched        EventType = "apps.artifact.fetched"
	EventOrphanFound            EventType = "apps.orphan.found"
	EventOrphanResolved         EventType = "apps.orphan.resolved"
	EventInstanceBreakGlass     EventType = "apps.instance.break_glass"
	EventBudgetThreshold        EventType = "apps.budget.threshold_reached"
	EventBudgetExceeded         EventType = "apps.budget.spent"
)

// eventTypes lists every type, in the order above.
var eventTypes = []EventType{
	EventInstanceRequested, EventInstanceRunning, EventInstanceFailed, EventInstanceDeleting, EventInstanceDeleted,
	EventInstanceStarting, EventInstanceStartCompleted, EventInstanceHealthy, EventInstanceDegraded,
	EventInstanceUnhealthy, EventInstanceRepairStopped, EventInstanceUpgraded, EventInstanceRolledBack,
	EventMemberAdded, EventMemberDrained, EventMemberRemoved, EventMemberFailed, EventMemberChanged,
	EventMemberOutOfMemory, EventMemberRestarted,
	EventActionInvoked,
	EventControlPlaneOffered, EventControlPlaneAttached, EventControlPlaneDeclined, EventControlPlaneWithdrawn,
	EventControlPlaneDetached,
	EventOperationAccepted, EventOperationStarted, EventOperationProgress, EventOperationCanceling,
	EventOperationCompensating, EventOperationSucceeded, EventOperationFailed, EventOperationCanceled,
	EventAllocationRequested, EventAllocationReady, EventAllocationReleasing, EventAllocationReleased,
	EventAllocationFailed,
	EventVolumeCreated, EventVolumeReady, EventVolumeResized, EventVolumeDeleting, EventVolumeDeleted,
	EventVolumeFailed,
	EventArtifactFetching, EventArtifactFetched,
	EventOrphanFound, EventOrphanResolved,
	EventInstanceBreakGlass,
	EventBudgetThreshold, EventBudgetExceeded,
}

// EventTypes lists every type of event.
func EventTypes() []EventType { return append([]EventType(nil), eventTypes...) }
