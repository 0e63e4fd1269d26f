package runbook

import "slices"

// FactCode and FactStep are the facts of an edge's On and Step.
const (
	FactCode = "code"
	FactStep = "step"
)

// Known is a fact that a program can read, and where.
type Known struct{ Name, From string }

// known are all facts that conditions may name.
var known = []Known{
	{FactCode, "the codes of the refused request and of its reasons; else what triage reports of the operation or " +
		"the instance"},
	{"field", "the paths of the refused request's reasons"},
	{"message", "the refusal's message, or triage's; the messages of its reasons"},
	{"asked", "the refused mutation, or the kind of the operation"},
	{FactStep, "the operation's step that runs or failed"},
	{"state", "the operation's state"},
	{"detail", "the messages and evidence of the operation's steps and of its tasks on nodes"},
	{"blocker", "the codes of all blockers of the instance and of its operations"},
	{"ready", "`GET /readyz`: `yes`, `no`, or `silent` without an answer"},
	{"answer.seconds", "how long a small read of the API takes; a number"},
	{"node.status", "the states of the nodes that the blocker names; else of all"},
	{"node.condition", "what the agents of those nodes found, as `name BAD`"},
	{"app.system", "`yes` where the instance is of an app that the operator runs for the platform"},
	{"member.failure", "why members of the instance were lost in service"},
	{"adapter.error", "why adapters could not be reached the last time, by `adapters`"},
	{"version.stage", "the stages of the app's versions, as `1.2.0 ACTIVE`"},
	{"version.next", "the stage after that of the version, by its manifest: `STAGED`, `CANARY`, `ACTIVE`, " +
		"`DEPRECATED` or `RETIRED`"},
	{"artifact.quarantine", "the codes or reasons of quarantine of the app's or the named artifact"},
	{"canary.halted", "`yes` where a canary of the app was halted"},
	{"key.days", "in how many days live keys of service accounts expire; numbers"},
	{"signer.days", "in how many days live signer keys of sources end; numbers"},
	{"console.days", "in how many days the certificate at the platform's address ends; a number"},
	{"feed.code", "the code that a live feed ended with"},
	{"webhook.error", "the last errors of webhooks that fail"},
	{"usage.basis", "the basis of usage sources that are recorded to more than an hour ago"},
	{"usage.error", "the last errors of usage sources"},
	{"usage.quarantined", "the codes of usage records in quarantine"},
	{"line.unpriced", "the meters of the statement's lines without a price"},
	{"line.month", "the months that lines of the statement correct"},
	{"run.none", "`yes` where usage is recorded and no run booked it within five minutes"},
	{"verify.differs", "where `verifyBillingRun` differs"},
	{"borne", "who pays for usage of the project, with the reason, as `PLATFORM FAILED_ADD`"},
	{"audit.refusals", "the codes of the refusals in the audit of the last hour"},
	{"metric.feed_lag", "`app_platform_reconcile_feed_lag_seconds`; a number"},
	{"metric.feed_holder", "the `kind` of `app_platform_feed_holder_seconds`: `backend` or `prepared`"},
	{"server.log", "messages and errors of the servers' warnings in the last five minutes, where logs are collected"},
	{"agent.log", "the same for the nodes' agents"},
	{"detail.adapter", "what the adapter reports of the instance's members, as JSON"},
}

// KnownFacts returns all facts that conditions may name, in the order of their list.
func KnownFacts() []Known { return slices.Clone(known) }

// IsKnown reports whether conditions may name the fact.
func IsKnown(fact string) bool {
	return slices.ContainsFunc(known, func(k Known) bool { return k.Name == fact })
}

// FactList prints the facts as a table.
func FactList() string {
	lines := "| fact | read from |\n|---|---|"
	for _, one := range known {
		lines += "\n" + Row("`"+one.Name+"`", one.From)
	}
	return lines
}
