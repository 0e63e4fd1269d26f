package lifecycle

// AllocationStatus is the state of an allocation of capacity.
type AllocationStatus string

// The states of an allocation. FAILED is not the end: a failed allocation can still be released.
const (
	AllocationRequested AllocationStatus = "REQUESTED"
	AllocationReady     AllocationStatus = "READY"
	AllocationReleasing AllocationStatus = "RELEASING"
	AllocationReleased  AllocationStatus = "RELEASED"
	AllocationFailed    AllocationStatus = "FAILED"
)

// Values lists every AllocationStatus as it is stored and published.
func (AllocationStatus) Values() []string {
	return names(AllocationRequested, AllocationReady, AllocationReleasing, AllocationReleased, AllocationFailed)
}

var allocationMachine = table[AllocationStatus]{"allocation", AllocationRequested, []Move[AllocationStatus]{
	{AllocationRequested, AllocationReady, "the platform bound it to a node"},
	{AllocationRequested, AllocationReleasing, "released before it was bound"},
	{AllocationRequested, AllocationFailed, "no node could be bound"},
	{AllocationReady, AllocationReleasing, "release; instances that use it stop first"},
	{AllocationReady, AllocationFailed, "its node is lost"},
	{AllocationFailed, AllocationReleasing, "release of what a failed allocation still holds"},
	{AllocationReleasing, AllocationReleased, "the agents prove no residue"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s AllocationStatus) CanMove(to AllocationStatus) error { return allocationMachine.check(s, to) }

// Terminal reports whether no state follows: RELEASED.
func (s AllocationStatus) Terminal() bool { return allocationMachine.terminal(s) }

// CapacityShape is how much of a node an allocation takes.
type CapacityShape string

// The capacity shapes.
const (
	ShapeBaremetal CapacityShape = "BAREMETAL"
	ShapeGPUSlice  CapacityShape = "GPU_SLICE"
)

// Values lists every CapacityShape as it is stored and published.
func (CapacityShape) Values() []string { return names(ShapeBaremetal, ShapeGPUSlice) }
