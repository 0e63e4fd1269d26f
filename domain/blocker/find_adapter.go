package blocker

import (
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// adapterSteps are the steps that call the adapter and cannot end without it.
var adapterSteps = []string{"dispatch", "await"}

// withdrawStep asks the adapter to stop, before what it did is taken back.
const withdrawStep = "withdraw"

// adapterCodes are the codes that a step notes while it waits for its adapter.
var adapterCodes = []fault.Code{fault.AdapterUnavailable, fault.AdapterInvalid, fault.DialRefused}

// onAdapter reports whether the operation cannot go on without its adapter now.
func (f *Facts) onAdapter() bool {
	op := f.Operation
	switch {
	case f.AdapterName == "" || op == nil:
		return false
	case op.State == lifecycle.OperationCompensating:
		return op.Step != nil && op.Step.Name == withdrawStep
	case op.State == lifecycle.OperationCanceling:
		return true
	}
	if op.Step == nil {
		return false
	}
	// "prepare" has drawn the dispatch number; the step after it is written only when the worker lets go of its claim.
	sending := op.Claimed && op.Step.Name == "prepare" && op.Dispatches > 0
	return sending || slices.Contains(adapterSteps, op.Step.Name) || slices.Contains(adapterCodes, op.Step.WaitCode)
}

// speaks reports whether the adapter is needed: by the open operation, or by the instance at all.
func (f *Facts) speaks() bool {
	if f.Operation != nil {
		return f.onAdapter()
	}
	return f.AdapterName != "" && f.Instance != nil
}

// failing reports whether the step's last try failed.
func (f *Facts) failing() bool {
	return f.Operation != nil && f.Operation.Step != nil && f.Operation.Step.Troubled && f.Operation.Failures > 0
}

// adapterSince returns when an adapter's problem began: its last good answer if that is known.
func (f *Facts) adapterSince() time.Time {
	switch {
	case f.Adapter == nil || f.Adapter.Problem == "":
		return f.began()
	case f.Adapter.Seen != nil:
		return *f.Adapter.Seen
	case f.Operation == nil:
		return f.Adapter.Registered
	}
	return f.began()
}

func (f *Facts) adapterTrouble(reason string) []finding {
	return []finding{{subject: f.AdapterName, since: f.adapterSince(), next: f.next(),
		words: []string{"adapter", f.AdapterName, "reason", reason}}}
}

func notRegistered(f *Facts) []finding {
	// The first step that needs the adapter fails.
	needed := f.speaks() || (f.failing() && f.Operation.State != lifecycle.OperationCompensating)
	if f.Adapter != nil || f.AdapterName == "" || !needed {
		return nil
	}
	return f.adapterTrouble("")
}

func dialRefused(f *Facts) []finding {
	if f.Adapter == nil || !f.speaks() || !(f.Adapter.DialRefused ||
		(f.failing() && f.Operation.Step.WaitCode == fault.DialRefused)) {
		return nil
	}
	return f.adapterTrouble("")
}

func refusesPlatform(f *Facts) []finding {
	if f.Adapter == nil || !f.speaks() || !(f.Adapter.Unauthenticated ||
		(f.failing() && f.Operation.Step.Unauthenticated)) {
		return nil
	}
	return f.adapterTrouble("")
}

func adapterInvalid(f *Facts) []finding {
	if f.Adapter == nil || !f.onAdapter() || !f.failing() || f.Operation.Step.WaitCode != fault.AdapterInvalid ||
		f.Operation.Step.Unauthenticated {
		return nil
	}
	return f.adapterTrouble(f.Operation.Step.Message)
}

// adapterUnavailable reports the last error of the step's calls to the adapter, or else the error of its feed.
func adapterUnavailable(f *Facts) []finding {
	if f.Adapter == nil || !f.speaks() {
		return nil
	}
	said := f.failing() && f.Operation.Step.WaitOwner == OwnerAdapter &&
		!slices.Contains([]fault.Code{fault.AdapterInvalid, fault.DialRefused}, f.Operation.Step.WaitCode)
	switch {
	case said:
		return f.adapterTrouble(f.Operation.Step.Message)
	case f.Adapter.Problem != "" && !f.Adapter.DialRefused && !f.Adapter.Unauthenticated:
		return f.adapterTrouble(f.Adapter.Problem)
	}
	return nil
}

func adapterWorking(f *Facts) []finding {
	op := f.Operation
	if !f.onAdapter() || op.State == lifecycle.OperationCanceling || op.State == lifecycle.OperationCompensating {
		return nil
	}
	reason := ""
	switch {
	case op.AdapterMessage != "":
		reason = ": " + op.AdapterMessage
	case op.AdapterState == "":
		reason = "; it has not reported yet"
	}
	return []finding{{subject: f.AdapterName, since: f.began(), next: f.next(),
		words: []string{"adapter", f.AdapterName, "reason", reason}}}
}

func feedSilent(f *Facts) []finding {
	a := f.Adapter
	if a == nil || !f.speaks() || a.Problem != "" || a.Seen == nil || f.Now.Sub(*a.Seen) < feedQuiet {
		return nil
	}
	return []finding{{subject: f.AdapterName, since: *a.Seen, words: []string{"adapter", f.AdapterName}}}
}
