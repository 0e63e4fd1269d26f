package lifecycle

// Stage is how far an artifact or a manifest is trusted.
type Stage string

// The stages of artifacts and manifests.
const (
	StageDraft      Stage = "DRAFT"
	StageStaged     Stage = "STAGED"
	StageCanary     Stage = "CANARY"
	StageActive     Stage = "ACTIVE"
	StageDeprecated Stage = "DEPRECATED"
	StageRetired    Stage = "RETIRED"
)

// Values lists every Stage as it is stored and published.
func (Stage) Values() []string {
	return names(StageDraft, StageStaged, StageCanary, StageActive, StageDeprecated, StageRetired)
}

// stageMoves is shared: artifacts and manifests are promoted by the same table, with guards of their own.
var stageMoves = []Move[Stage]{
	{StageDraft, StageStaged, "lint and smoke passed"},
	{StageStaged, StageCanary, "small rollout enabled"},
	{StageCanary, StageActive, "confidence gained"},
	{StageCanary, StageStaged, "rollback"},
	{StageActive, StageDeprecated, "a newer version is active"},
	{StageDeprecated, StageRetired, "its grace period has ended and nothing live uses it"},
}

var (
	artifactMachine = table[Stage]{"artifact", StageDraft, stageMoves}
	manifestMachine = table[Stage]{"manifest", StageDraft, stageMoves}
)

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both stages.
func (s Stage) CanMove(to Stage) error {
	return table[Stage]{"version", StageDraft, stageMoves}.check(s, to)
}

// Terminal reports whether no stage follows: RETIRED.
func (s Stage) Terminal() bool { return manifestMachine.terminal(s) }

// Launchable reports whether a manifest of this stage takes new instances in general: only ACTIVE. A canary
// takes those of its rollout, and a staged one only its smoke launch: rules of their own.
func (s Stage) Launchable() bool { return s == StageActive }
