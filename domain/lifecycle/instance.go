package lifecycle

// InstanceStatus is the state of an app instance in its life. Health is a field beside it, never a part of it.
type InstanceStatus string

// The states of an instance. STOPPED and FAILED are the end of service; a failed instance is still torn down.
const (
	InstanceCreated  InstanceStatus = "CREATED"
	InstanceStarting InstanceStatus = "STARTING"
	InstanceRunning  InstanceStatus = "RUNNING"
	InstanceStopping InstanceStatus = "STOPPING"
	InstanceStopped  InstanceStatus = "STOPPED"
	InstanceFailed   InstanceStatus = "FAILED"
)

// Values lists every InstanceStatus as it is stored and published.
func (InstanceStatus) Values() []string {
	return names(
		InstanceCreated, InstanceStarting, InstanceRunning, InstanceStopping, InstanceStopped, InstanceFailed,
	)
}

var instanceMachine = table[InstanceStatus]{"instance", InstanceCreated, []Move[InstanceStatus]{
	{InstanceCreated, InstanceStarting, "a worker dispatched the create"},
	{InstanceCreated, InstanceStopping, "decommissioned during its create"},
	{InstanceCreated, InstanceFailed, "the create failed before its dispatch"},
	{InstanceStarting, InstanceRunning, "the readiness probes passed"},
	{InstanceStarting, InstanceStopping, "decommissioned during its create"},
	{InstanceStarting, InstanceFailed, "bootstrap failed or met its deadline"},
	{InstanceRunning, InstanceStopping, "decommission, or its allocation is releasing"},
	{InstanceRunning, InstanceFailed, "runtime error"},
	{InstanceStopping, InstanceStopped, "teardown is proved"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s InstanceStatus) CanMove(to InstanceStatus) error { return instanceMachine.check(s, to) }

// Terminal reports whether no state follows: STOPPED and FAILED.
func (s InstanceStatus) Terminal() bool { return instanceMachine.terminal(s) }

// Live reports whether the instance serves or is on its way there: it may be operated and it holds its version.
func (s InstanceStatus) Live() bool {
	return s == InstanceCreated || s == InstanceStarting || s == InstanceRunning
}

// OperatingMode is who runs an instance's control plane.
type OperatingMode string

// The operating modes.
const (
	ModeTenantDedicated OperatingMode = "TENANT_DEDICATED"
	ModePlatformManaged OperatingMode = "PLATFORM_MANAGED"
)

// Values lists every OperatingMode as it is stored and published.
func (OperatingMode) Values() []string { return names(ModeTenantDedicated, ModePlatformManaged) }

// ControlPlaneScope is whom an instance's control plane serves.
type ControlPlaneScope string

// The control plane scopes.
const (
	ControlPlaneProject ControlPlaneScope = "PROJECT"
	ControlPlaneTenant  ControlPlaneScope = "TENANT"
)

// Values lists every ControlPlaneScope as it is stored and published.
func (ControlPlaneScope) Values() []string { return names(ControlPlaneProject, ControlPlaneTenant) }
