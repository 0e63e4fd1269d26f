// Package walker reads the facts that a runbook goes by, as a support engineer would: by the public API, the health and
// the metrics of an installation, and what is collected of its logs. It imports nothing of the platform.
package walker

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/runbook"
)

// patience bounds one read.
const patience = 15 * time.Second

// Walker reads one installation.
type Walker struct {
	// URL is the platform's address.
	URL string
	// Operator reads what is the platform's, and Person what is a tenant's.
	Operator, Person *client.Client
	// Metrics returns the addresses of the processes' metrics.
	Metrics func() []string
	// ServerLogs and AgentLogs return the paths of what processes have logged; nil where no logs are collected.
	ServerLogs, AgentLogs func() []string
	// Since is from when on lines of logs count; the last five minutes where it is later.
	Since time.Time
}

// Subject is what a walk is about. Everything but what the incident is known by is empty.
type Subject struct {
	// Refused is the error of a refused request.
	Refused error
	// ID is an operation, an instance, or the correlation id of a request.
	ID string
	// Feed is the error that a live feed ended with.
	Feed error
	// TenantID, ProjectID and AppSlug are where it happened.
	TenantID, ProjectID, AppSlug string
	// ManifestID and ArtifactID are the version and the artifact that it is about.
	ManifestID, ArtifactID string
	// PeriodID and RunID are the statement's period and the run that are doubted.
	PeriodID, RunID string
}

// reader reads some facts of the platform into others.
type reader struct {
	facts []string
	read  func(w *Walker, ctx context.Context, about *Subject, into runbook.Facts) error
}

// readers are all readers, in an order in which a later one may use what an earlier one has found.
var readers = []reader{
	{[]string{"code", "field", "message", "asked"}, (*Walker).refusal},
	{[]string{"code", "message", "asked", "state", "step", "detail"}, (*Walker).report},
	{[]string{"ready"}, (*Walker).health},
	{[]string{"answer.seconds"}, (*Walker).answer},
	{[]string{"app.system", "blocker", "member.failure", "detail.adapter"}, (*Walker).instance},
	{[]string{"node.status", "node.condition"}, (*Walker).nodes},
	{[]string{"adapter.error"}, (*Walker).adapters},
	{[]string{"version.stage", "canary.halted"}, (*Walker).app},
	{[]string{"version.next"}, (*Walker).manifest},
	{[]string{"artifact.quarantine"}, (*Walker).artifact},
	{[]string{"signer.days"}, (*Walker).sources},
	{[]string{"key.days"}, (*Walker).accounts},
	{[]string{"console.days"}, (*Walker).certificate},
	{[]string{"feed.code"}, (*Walker).feed},
	{[]string{"webhook.error"}, (*Walker).webhooks},
	{[]string{"usage.basis", "usage.error", "usage.quarantined", "borne"}, (*Walker).usage},
	{[]string{"line.unpriced", "line.month", "run.none", "verify.differs"}, (*Walker).books},
	{[]string{"audit.refusals"}, (*Walker).audit},
	{[]string{"metric.feed_lag", "metric.feed_holder"}, (*Walker).metrics},
	{[]string{"server.log", "agent.log"}, (*Walker).logs},
}

// Reads reports whether a reader reads the fact.
func Reads(fact string) bool {
	for _, one := range readers {
		for _, name := range one.facts {
			if name == fact {
				return true
			}
		}
	}
	return false
}

// Facts reads what the runbook goes by. What cannot be read is left out, as it is for a person.
func (w *Walker) Facts(ctx context.Context, book runbook.Runbook, about Subject) runbook.Facts {
	wanted := map[string]bool{}
	for _, check := range book.Checks {
		for _, edge := range check.Edges {
			for _, condition := range edge.Conditions() {
				wanted[condition.Fact] = true
			}
		}
	}
	into := runbook.Facts{}
	for _, one := range readers {
		for _, fact := range one.facts {
			if wanted[fact] {
				bounded, cancel := context.WithTimeout(ctx, patience)
				_ = one.read(w, bounded, &about, into)
				cancel()
				break
			}
		}
	}
	return into
}

// refusal reads the error of a refused request.
func (w *Walker) refusal(_ context.Context, about *Subject, into runbook.Facts) error {
	found, ok := client.AsError(about.Refused)
	if !ok {
		return nil
	}
	into.Add("code", found.Code)
	into.Add("asked", found.Field)
	into.Add("message", found.Message)
	for _, reason := range found.Reasons {
		into.Add("code", reason.Code)
		into.Add("field", reason.Path)
		into.Add("message", reason.Message)
	}
	return nil
}

// health asks whether the platform is ready. A pool of connections would hide that nothing listens any more.
func (w *Walker) health(ctx context.Context, _ *Subject, into runbook.Facts) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		into.Add("ready", "silent")
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		into.Add("ready", "yes")
	} else {
		into.Add("ready", "no")
	}
	return nil
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// days is how many days there are until then.
func days(until time.Time) string { return number(time.Until(until).Hours() / 24) }
