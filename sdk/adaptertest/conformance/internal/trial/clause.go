package trial

// Clause is one rule of the contract and the function that checks it.
type Clause struct {
	// ID, Rule, Section, Fix and Needs are as in conformance.Clause.
	ID, Rule, Section, Fix string
	Needs                  []string
	// Run checks the rule. It returns when the adapter keeps the rule, and otherwise ends the clause
	// through its check.
	Run func(*Check)
}

// Created is the clause that most others need: an instance can be created at all.
const Created = "dispatch.completes"

// Sections of the contract that clauses of several groups belong to.
const (
	// InDispatch is the section on dispatches.
	InDispatch = "PUT /v1/operations/{id}"
	// InFence is the section on attempts.
	InFence = "PUT /v1/operations/{id}, Fence"
	// InObserve is the section on observations.
	InObserve = "GET /v1/instances/{id}"
)
