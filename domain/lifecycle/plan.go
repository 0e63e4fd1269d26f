package lifecycle

// PlanAction is what a plan would do with a member.
type PlanAction string

// The actions of a plan.
const (
	PlanAdd     PlanAction = "ADD"
	PlanDrain   PlanAction = "DRAIN"
	PlanRemove  PlanAction = "REMOVE"
	PlanReplace PlanAction = "REPLACE"
	PlanRecover PlanAction = "RECOVER"
	PlanChange  PlanAction = "CHANGE"
)

// Values lists every PlanAction as it is stored and published.
func (PlanAction) Values() []string {
	return names(PlanAdd, PlanDrain, PlanRemove, PlanReplace, PlanRecover, PlanChange)
}

// VerdictSource is who has a say in a plan; the order is the order of verdicts.
type VerdictSource string

// The sources.
const (
	VerdictState         VerdictSource = "STATE"
	VerdictCompatibility VerdictSource = "COMPATIBILITY"
	VerdictQuota         VerdictSource = "QUOTA"
	VerdictPolicy        VerdictSource = "POLICY"
	VerdictAdapter       VerdictSource = "ADAPTER"
)

// Values lists every VerdictSource as it is stored and published.
func (VerdictSource) Values() []string {
	return names(VerdictState, VerdictCompatibility, VerdictQuota, VerdictPolicy, VerdictAdapter)
}

// VerdictOutcome is what somebody has to say to a plan.
type VerdictOutcome string

// The outcomes. Unknown is never read as allowed.
const (
	VerdictAllowed VerdictOutcome = "ALLOWED"
	VerdictRefused VerdictOutcome = "REFUSED"
	VerdictUnknown VerdictOutcome = "UNKNOWN"
)

// Values lists every VerdictOutcome as it is stored and published.
func (VerdictOutcome) Values() []string {
	return names(VerdictAllowed, VerdictRefused, VerdictUnknown)
}
