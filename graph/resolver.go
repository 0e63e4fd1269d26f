// Package graph translates between the public contract and the verbs: a resolver checks nothing
// and decides nothing, it calls one verb or one read of a service and shapes the answer.
package graph

import (
	"sync"
	"time"

	"github.com/gpuaas/app-platform/authz/token"
	tables "github.com/gpuaas/app-platform/graph/generated/plain"
	"github.com/gpuaas/app-platform/graph/kept"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/automation"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/blocker"
	"github.com/gpuaas/app-platform/service/breakglass"
	"github.com/gpuaas/app-platform/service/budget"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/catalog/trust"
	"github.com/gpuaas/app-platform/service/delivery"
	"github.com/gpuaas/app-platform/service/endpoint"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/explain"
	"github.com/gpuaas/app-platform/service/fleet"
	"github.com/gpuaas/app-platform/service/gap"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/memberlog"
	"github.com/gpuaas/app-platform/service/membermetric"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/onboarding"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/policy"
	"github.com/gpuaas/app-platform/service/price"
	"github.com/gpuaas/app-platform/service/retry"
	"github.com/gpuaas/app-platform/service/secret"
	"github.com/gpuaas/app-platform/service/share"
	"github.com/gpuaas/app-platform/service/source"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/service/triage"
	"github.com/gpuaas/app-platform/service/usage"
	"github.com/gpuaas/app-platform/service/volume"
	"github.com/gpuaas/app-platform/service/webhook"
)

// Resolver is the root of all resolvers: the services they call.
type Resolver struct {
	// DB is the database, for reads that belong to no service of their own.
	DB *tx.DB
	// BatchWait is how long to wait for the elements of a list, which resolve together, before what they need is
	// read at once; zero for a millisecond.
	BatchWait time.Duration
	// Instances holds the verbs on instances.
	Instances *instance.Service
	// Identity holds the verbs on tenants, projects, people, roles, service accounts and logins.
	Identity *identity.Service
	// Catalog holds the verbs on apps and manifests.
	Catalog *catalog.Service
	// Entries holds the verbs that make apps and open them.
	Entries *entry.Service
	// Automation holds the verbs by which adapters act outside of operations.
	Automation *automation.Service
	// Trust holds the verbs on runners and terms, and what was brought and taken.
	Trust *trust.Service
	// Entitlements holds the verbs on the right to launch an app.
	Entitlements *entitlement.Service
	// ArtifactSources holds the verbs on artifact sources.
	ArtifactSources *source.Service
	// Deliveries brings artifacts to nodes.
	Deliveries *delivery.Service
	// Canaries reports how canaries do.
	Canaries *canary.Service
	// Artifacts holds the verbs on artifacts.
	Artifacts *artifact.Service
	// Adapters holds the verbs on adapters.
	Adapters *adapter.Service
	// Allocations holds the verbs on allocations.
	Allocations *allocation.Service
	// Nodes holds the verbs on nodes.
	Nodes *node.Service
	// Fleet is the operators' verbs on nodes.
	Fleet *fleet.Service
	// Tasks holds the verbs on node tasks.
	Tasks *task.Service
	// Members holds the verbs on members.
	Members *member.Service
	// MemberLogs holds the reads of what members print.
	MemberLogs *memberlog.Service
	// MemberMetrics holds the reads of what members use.
	MemberMetrics *membermetric.Service
	// Logs follows what members print.
	Logs *live.Logs
	// Retries holds the verb that tries operations again.
	Retries *retry.Service
	// Blockers reads what keeps operations and instances from where they should be.
	Blockers *blocker.Service
	// Triages reports on single requests.
	Triages *triage.Service
	// Readiness checks whether versions are ready to be offered to every tenant.
	Readiness *onboarding.Service
	// GapLog holds the verbs on the gap log.
	GapLog *gap.Service
	// Usage holds the reads of metered usage, and its report.
	Usage *usage.Service
	// Orphans holds the verbs on what operations left behind.
	Orphans *orphan.Service
	// Prices holds the verbs on list prices.
	Prices *price.Service
	// Budgets holds budgets and the reads of costs.
	Budgets *budget.Service
	// Storage holds the verbs on volumes and storage classes.
	Storage *volume.Service
	// Endpoints holds the verbs by which people reach what runs.
	Endpoints *endpoint.Service
	// Billing holds the books: runs, statements, credit.
	Billing *billing.Service
	// Explain says who may do what, and why.
	Explain *explain.Service
	// Policies holds the verbs on policy overlays.
	Policies *policy.Service
	// Shares holds the verbs on shared control planes.
	Shares *share.Service
	// Secrets holds the verbs on runtime secrets.
	Secrets *secret.Service
	// Webhooks holds the verbs on outbound webhooks.
	Webhooks *webhook.Service
	// BreakGlass holds the verbs that set rules aside.
	BreakGlass *breakglass.Service
	// Progress watches single operations.
	Progress *live.Progress
	// Keys signs operation tokens.
	Keys *token.Keyring

	// KeptAnswers is how many bytes of answers are kept to be shown again; 0 keeps none.
	KeptAnswers int

	answersOnce sync.Once
	answers     *kept.Answers
}

// Answers answers queries of plain fields.
func (r *Resolver) Answers() *kept.Answers {
	r.answersOnce.Do(func() { r.answers = kept.New(r.DB, plain.New(tables.Tables(r)["Query"]), r.KeptAnswers) })
	return r.answers
}
