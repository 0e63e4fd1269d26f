package lifecycle

// TriageStand is the state of what somebody requested.
type TriageStand string

// The values of TriageStand.
const (
	// TriageUnderWay is open, and nothing is wrong.
	TriageUnderWay TriageStand = "UNDER_WAY"
	// TriageBlocked is open, and something keeps it from going on.
	TriageBlocked TriageStand = "BLOCKED"
	// TriageDone has ended as it should.
	TriageDone TriageStand = "DONE"
	// TriageUnwell has ended as it should, and something is wrong with the instance since.
	TriageUnwell TriageStand = "UNWELL"
	// TriageFailed has ended without what it was for.
	TriageFailed TriageStand = "FAILED"
	// TriageRefused was never accepted.
	TriageRefused TriageStand = "REFUSED"
	// TriageAccepted was done in the request itself, without an operation.
	TriageAccepted TriageStand = "ACCEPTED"
)

// Values lists every TriageStand as it is published.
func (TriageStand) Values() []string {
	return names(TriageUnderWay, TriageBlocked, TriageDone, TriageUnwell, TriageFailed, TriageRefused, TriageAccepted)
}

// TriageEvidenceKind is what a piece of a triage's evidence is.
type TriageEvidenceKind string

// The kinds.
const (
	EvidenceOfBlocker TriageEvidenceKind = "BLOCKER"
	EvidenceOfStep    TriageEvidenceKind = "STEP"
	EvidenceOfTask    TriageEvidenceKind = "TASK"
	EvidenceOfEvent   TriageEvidenceKind = "EVENT"
	EvidenceOfAudit   TriageEvidenceKind = "AUDIT"
	EvidenceOfCall    TriageEvidenceKind = "CALL"
	EvidenceOfTrace   TriageEvidenceKind = "TRACE"
	EvidenceOfLogs    TriageEvidenceKind = "LOGS"
)

// Values lists every TriageEvidenceKind as it is published.
func (TriageEvidenceKind) Values() []string {
	return names(EvidenceOfBlocker, EvidenceOfStep, EvidenceOfTask, EvidenceOfEvent, EvidenceOfAudit, EvidenceOfCall,
		EvidenceOfTrace, EvidenceOfLogs)
}
