package onboarding

import (
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// MaxInstances bounds the instances of a version that are read, the newest first.
const MaxInstances = 50

// Facts are what was recorded of a version of an app, as far as the caller may read it.
type Facts struct {
	// App and Version are the version; Adapter runs it, and Build is what the adapter describes itself as now.
	App, Version, Adapter, Build string
	// Contracts are the versions of the adapter contract that it speaks; none before it described itself.
	Contracts []string
	// Lifecycle and Runbooks are what the manifest declares.
	Lifecycle *manifest.Lifecycle
	Runbooks  []manifest.Runbook

	// Instances have run the version, newest first, at most MaxInstances.
	Instances []*Instance
	// Calls are the recorded calls of its adapter.
	Calls Calls
	// Acts are what was done for the version outside of its instances: published, reported, promoted, launched.
	Acts []*Act
	// Accounts are service accounts that were named for its automation.
	Accounts []*Account
	// Reports are those of the adapter's build, newest first.
	Reports []*Report
	// Artifacts are what it pins.
	Artifacts []*Artifact
	// Walks are operations on its instances that upgrade, roll back or delete, newest first.
	Walks []*Walk
}

// Instance has run the version.
type Instance struct {
	ID ids.ID `json:"id"`
	// Entitled reports whether its project was ever entitled to the app; a smoke launch needs no entitlement.
	Entitled bool `json:"entitled"`
	Smoke    bool `json:"smoke"`
	// Ran and Gone report whether its launch has succeeded, and whether nothing is left of it.
	Ran  bool       `json:"ran"`
	Gone bool       `json:"gone"`
	At   *time.Time `json:"at"`
	// Events are those of the required types.
	Events []*Event `json:"events"`
	Of     Owner    `json:"of"`
}

// Event is an entry of a timeline.
type Event struct {
	ID   ids.ID     `json:"id"`
	Type string     `json:"type"`
	At   *time.Time `json:"at"`
	// Lacks are the fields of context that it does not have.
	Lacks []string `json:"lacks"`
}

// Calls are what the audit has of an adapter's calls, and what it should have and does not.
type Calls struct {
	// Count are the calls that were allowed, and At is when the newest was.
	Count int        `json:"count"`
	At    *time.Time `json:"at"`
	// Refused are calls for which the token lacked the right.
	Refused []*Row `json:"refused"`
	// Hidden are rows that a call makes, and that no recorded call accounts for.
	Hidden []*Row `json:"hidden"`
}

// Row is something that is stored.
type Row struct {
	ID   ids.ID     `json:"id"`
	What string     `json:"what"`
	At   *time.Time `json:"at"`
	Of   Owner      `json:"of"`
}

// Act is something that somebody did for the version.
type Act struct {
	ID   ids.ID `json:"id"`
	What string `json:"what"`
	// Account is the service account that did it; empty for anybody else. Live reports whether it still exists.
	Account string     `json:"account"`
	Name    string     `json:"name"`
	Live    bool       `json:"live"`
	At      *time.Time `json:"at"`
	Of      Owner      `json:"of"`
}

// Account is a service account with what it was named for.
type Account struct {
	ID   ids.ID     `json:"id"`
	Name string     `json:"name"`
	What string     `json:"what"`
	Live bool       `json:"live"`
	At   *time.Time `json:"at"`
	Of   Owner      `json:"of"`
}

// Report is a report of the conformance suite.
type Report struct {
	ID   ids.ID `json:"id"`
	Kind string `json:"kind"`
	// Passed reports whether nothing failed and every required clause has passed.
	Passed bool `json:"passed"`
	// Failed counts clauses, Missing are required ones that have not passed, and Clauses those that have passed.
	Failed  int      `json:"failed"`
	Missing []string `json:"missing"`
	Clauses []string `json:"clauses"`
	// Runner is the registered runner that signed it; empty for none, and for one that was revoked.
	Runner string     `json:"runner"`
	At     *time.Time `json:"at"`
}

// Artifact is something that the version pins.
type Artifact struct {
	ID   ids.ID `json:"id"`
	Name string `json:"name"`
	// Source is where it comes from; empty for nowhere registered. Off reports whether that was switched off.
	Source string `json:"source"`
	Off    bool   `json:"off"`
	// Signed is what checking its signature found, and Needed whether its source requires one.
	Signed string `json:"signed"`
	Needed bool   `json:"needed"`
	// Quarantine is why it is in quarantine; empty where it is not.
	Quarantine string `json:"quarantine"`
	// Denied is why policy does not let it through; empty where it does.
	Denied string     `json:"denied"`
	At     *time.Time `json:"at"`
}

// Walk is an operation that upgrades, rolls back or deletes.
type Walk struct {
	ID   ids.ID `json:"id"`
	Kind string `json:"kind"`
	// Succeeded reports whether it ended as it should, with proof; it has ended in any case.
	Succeeded bool `json:"succeeded"`
	// From and To are the versions before and after; the same for a change of configuration, and empty of a deletion.
	From string     `json:"from"`
	To   string     `json:"to"`
	At   *time.Time `json:"at"`
	Of   Owner      `json:"of"`
}
