// Package spending knows budgets: whose they are, what becomes of them at the limit, and by how much one can be passed;
// and by what costs are shared out.
package spending

import (
	"time"

	"github.com/gpuaas/app-platform/domain/money"
)

// Scope is whose budget it is.
type Scope string

// The scopes.
const (
	Tenant         Scope = "TENANT"
	Project        Scope = "PROJECT"
	ServiceAccount Scope = "SERVICE_ACCOUNT"
	Instance       Scope = "INSTANCE"
)

// Values lists every Scope as it is stored and published.
func (Scope) Values() []string {
	return []string{string(Tenant), string(Project), string(ServiceAccount), string(Instance)}
}

// Noun returns the scope as it is written in a sentence.
func (s Scope) Noun() string {
	return map[Scope]string{Tenant: "tenant", Project: "project", ServiceAccount: "service account",
		Instance: "instance"}[s]
}

// Span is what a budget's amount is for.
type Span string

// The spans: a month in UTC, or everything since the budget was set.
const (
	Month Span = "MONTH"
	Total Span = "TOTAL"
)

// Values lists every Span as it is stored and published.
func (Span) Values() []string { return []string{string(Month), string(Total)} }

// Outcome is what becomes of a budget whose amount is spent.
type Outcome string

// The outcomes. Each but Tell refuses what is new from the moment at which it would no longer be kept.
const (
	Tell         Outcome = "TELL"
	Refuse       Outcome = "REFUSE"
	Drain        Outcome = "DRAIN"
	Decommission Outcome = "DECOMMISSION"
)

// Values lists every Outcome as it is stored and published.
func (Outcome) Values() []string {
	return []string{string(Tell), string(Refuse), string(Drain), string(Decommission)}
}

// Sentence returns what happens at the limit as it is written in a sentence.
func (o Outcome) Sentence() string {
	return map[Outcome]string{
		Tell: "nothing is stopped", Refuse: "new capacity, members and launches are refused",
		Drain: "its members are drained", Decommission: "its instances are torn down and their capacity is released",
	}[o]
}

// The times that bound how far an amount can be passed.
const (
	// Every is how often the books are read for budgets.
	Every = time.Minute
	// Behind is how far the books may be behind what is proved to run: a record is of a minute, and some seconds late.
	Behind = 90 * time.Second
	// TeardownDeadline and ReleaseDeadline are those of the operations that give capacity back.
	TeardownDeadline = 15 * time.Minute
	ReleaseDeadline  = 15 * time.Minute
	// DrainDeadline is that of a drain.
	DrainDeadline = time.Hour
)

// Places are those of amounts that are worked out.
const Places = 6

// Overshoot returns by how much an amount can be passed by capacity at this price of an hour until the outcome has
// ended it; nil when nothing ends it. Between two reads of the books, behind them, and until both operations miss their
// deadlines the capacity goes on costing.
func (o Outcome) Overshoot(hourly money.Decimal) *money.Decimal {
	if o != Decommission {
		return nil
	}
	over := OfHour(hourly, Every+Behind+TeardownDeadline+ReleaseDeadline)
	return &over
}

// OfHour returns what a time costs at the price of an hour.
func OfHour(hourly money.Decimal, during time.Duration) money.Decimal {
	return hourly.Mul(money.Int(int64(during/time.Second))).Quotient(money.Int(int64(time.Hour/time.Second)), Places)
}
