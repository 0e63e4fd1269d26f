// Package onboarding is the baseline for every app team as a pure function: it derives seven verdicts from what was
// recorded of a version of an app, each with its evidence and the time of that. An app is ready for onboarding when
// all seven have passed.
//
// A verdict is not the platform's opinion of an app. What was never recorded is NOT_KNOWN, which is as little enough
// as a failure.
package onboarding

import (
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Condition is one of the seven.
type Condition string

// The conditions, in the order of the baseline.
const (
	// ContractsOnly: the app is launched and driven by the public contract alone.
	ContractsOnly Condition = "CONTRACTS"
	// ServiceAccount: service accounts do what is automated.
	ServiceAccount Condition = "SERVICE_ACCOUNT"
	// TenantBoundary: negative tests between tenants have passed.
	TenantBoundary Condition = "TENANT_BOUNDARY"
	// LifecycleEvents: the required events are there, with every field of context.
	LifecycleEvents Condition = "LIFECYCLE_EVENTS"
	// ArtifactSources: every artifact comes from a source that policy governs.
	ArtifactSources Condition = "ARTIFACT_SOURCES"
	// LifecycleWalked: upgrade, rollback and deletion are declared and were carried out.
	LifecycleWalked Condition = "LIFECYCLE_WALKED"
	// SupportRunbook: support has a runbook whose triage begins from the correlation id.
	SupportRunbook Condition = "SUPPORT_RUNBOOK"
)

// Conditions lists the conditions in their order.
func Conditions() []Condition {
	return []Condition{ContractsOnly, ServiceAccount, TenantBoundary, LifecycleEvents, ArtifactSources, LifecycleWalked,
		SupportRunbook}
}

// Values lists every Condition as it is stored and published.
func (Condition) Values() []string {
	all := Conditions()
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

// Gap returns the kind of gap that a failure of the condition is noted as. It is a first guess: the person who decides
// the gap may find another cause.
func (c Condition) Gap() lifecycle.GapKind {
	switch c {
	case ContractsOnly:
		return lifecycle.GapCoupling
	case ServiceAccount, TenantBoundary, ArtifactSources:
		return lifecycle.GapKey
	case LifecycleEvents, SupportRunbook:
		return lifecycle.GapEvent
	}
	return lifecycle.GapPrimitive
}

// Verdict is the result for a condition.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "PASSED"
	Failed Verdict = "FAILED"
	// NotKnown is the verdict where nothing, or not enough, was recorded.
	NotKnown Verdict = "NOT_KNOWN"
)

// Values lists every Verdict as it is stored and published.
func (Verdict) Values() []string { return []string{string(Passed), string(Failed), string(NotKnown)} }

// MaxEvidence bounds the evidence of a check.
const MaxEvidence = 10

// Evidence is one thing that a verdict rests on.
type Evidence struct {
	// ID is what it is, as the platform names it; nil for a link.
	ID *ids.ID `json:"id,omitempty"`
	// URL is where to read it; empty for what has an id.
	URL string `json:"url,omitempty"`
	// What names it, such as an event's type.
	What string `json:"what"`
	// State is what it says, such as passed; empty where it only exists.
	State string `json:"state,omitempty"`
	// At is when it happened; nil where it has no time of its own.
	At *time.Time `json:"at,omitempty"`
	// Of is the row that decides who may see it.
	Of Owner `json:"of"`
}

// Owner is where a piece of evidence belongs. A caller that may not read there gets the verdict without it.
type Owner struct {
	// Tenant and Project own it; empty for the platform's.
	Tenant  ids.ID `json:"tenant,omitempty"`
	Project ids.ID `json:"project,omitempty"`
	// Instance is the instance that it is, or is of; empty for none.
	Instance ids.ID `json:"instance,omitempty"`
	// Family is the permission family of the instance that it is of; empty for none.
	Family string `json:"family,omitempty"`
	// Kind is the sort of row whose key it needs; empty when every reader of the version may read it.
	Kind Kind `json:"kind,omitempty"`
}

// Kind is what sort of row a piece of evidence is, where it needs a key of its own.
type Kind string

// The kinds.
const (
	OfInstance  Kind = "instance"
	OfOperation Kind = "operation"
	OfTask      Kind = "task"
	OfAudit     Kind = "audit"
	OfAccount   Kind = "account"
)

// Check is one condition with its verdict.
type Check struct {
	Condition Condition `json:"condition"`
	Verdict   Verdict   `json:"verdict"`
	// Message says why, and Remedy what to do about it; Remedy is empty where it has passed.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	// At is when the newest thing happened that the verdict rests on; nil for nothing.
	At *time.Time `json:"at,omitempty"`
	// Evidence are what it rests on, what speaks against it first, at most MaxEvidence.
	Evidence []*Evidence `json:"evidence"`
	// GapID is the gap that a failure was noted as; nil for none. It is not a part of what was found.
	GapID *ids.ID `json:"-"`
}

// Judge returns the seven checks in their order.
func Judge(facts *Facts) []*Check {
	out := make([]*Check, 0, len(Conditions()))
	for _, judge := range []func(*Facts) *Check{contracts, account, boundary, events, sources, walked, runbooks} {
		one := judge(facts)
		for _, each := range one.Evidence {
			if each.At != nil && (one.At == nil || each.At.After(*one.At)) {
				one.At = each.At
			}
		}
		one.Evidence = one.Evidence[:min(len(one.Evidence), MaxEvidence)]
		out = append(out, one)
	}
	return out
}

// Lacking returns the conditions that have not passed, in their order.
func Lacking(checks []*Check) []Condition {
	out := []Condition{}
	for _, one := range checks {
		if one.Verdict != Passed {
			out = append(out, one.Condition)
		}
	}
	return out
}

// Words are the conditions as a sentence lists them.
func Words(conditions []Condition) string {
	words := make([]string, len(conditions))
	for i, one := range conditions {
		words[i] = string(one)
	}
	return strings.Join(words, ", ")
}

// verdict makes a check. The remedy of what has passed is empty.
func verdict(of Condition, is Verdict, evidence []*Evidence, remedy, format string, args ...any) *Check {
	if is == Passed {
		remedy = ""
	}
	if evidence == nil {
		evidence = []*Evidence{}
	}
	return &Check{Condition: of, Verdict: is, Message: fmt.Sprintf(format, args...), Remedy: remedy, Evidence: evidence}
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
