package kept

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxVariables bounds the text of the variables that an answer is kept for, in bytes.
const maxVariables = 1 << 10

// Answers answers plain queries, and keeps what can be proved. It is safe for concurrent use.
type Answers struct {
	db    *tx.DB          // proves
	plain *plain.Executor // answers

	store        *store
	shown, fresh atomic.Int64
}

// New returns answers that keep at most so many bytes; 0 keeps none.
func New(db *tx.DB, executor *plain.Executor, bytes int) *Answers {
	return &Answers{db: db, plain: executor, store: newStore(bytes)}
}

// Answer runs the operation of ctx. It reports false for one that the executor must answer.
func (a *Answers) Answer(ctx context.Context) (*graphql.Response, bool) {
	plan := a.plain.Plan(ctx)
	if plan == nil {
		return nil, false
	}
	asked, ok := a.keepable(ctx, plan)
	if !ok {
		return plan.Answer(ctx)
	}
	known, proof := a.known(ctx, asked)
	if known != nil {
		a.shown.Add(1)
		authz.Note(ctx, known.object)
		return &graphql.Response{Data: json.RawMessage(known.data)}, true
	}
	return a.answer(ctx, plan, asked, proof)
}

// question is a request, its caller, and what proves its answer.
type question struct {
	key
	credential string
	about      tx.Subject
}

// known returns the kept answer that the caller would get now, and its proof; no answer where none is kept or proved,
// and no proof where none was requested: the read then requests it in its own round trip.
func (a *Answers) known(ctx context.Context, asked question) (*answer, tx.Proof) {
	found := a.store.get(asked.key)
	if found == nil {
		return nil, tx.Proof{}
	}
	now, err := a.db.Prove(ctx, asked.about)
	if err != nil || !now.Holds() {
		return nil, tx.Proof{} // the read meets the error again
	}
	if asked.rights != now.Rights() { // they have changed since, or the hour is over
		a.store.learn(asked.credential, now.Rights())
		asked.rights = now.Rights()
		found = a.store.get(asked.key)
	}
	if found == nil || found.proof != now {
		return nil, now
	}
	return found, now
}

// answer reads, and keeps what was read where it is proved.
func (a *Answers) answer(ctx context.Context, plan *plain.Plan, asked question,
	proof tx.Proof) (*graphql.Response, bool) {
	ctx, proving := tx.WithProving(ctx, asked.about, proof)
	response, ok := plan.Answer(ctx)
	if !ok {
		return nil, false
	}
	a.fresh.Add(1)
	if proof, proved := proving.Proved(); proved {
		asked.rights = proof.Rights()
		a.store.learn(asked.credential, asked.rights)
		a.store.put(asked.key, &answer{data: response.Data, proof: proof, object: authz.AboutOf(ctx)})
	}
	return response, true
}

// keepable returns the question of ctx's operation; not ok where no answer can be proved.
func (a *Answers) keepable(ctx context.Context, plan *plain.Plan) (question, bool) {
	if a.store == nil {
		return question{}, false
	}
	credential, ok := tx.CredentialFrom(ctx)
	if !ok || !credential.Provable() {
		return question{}, false
	}
	variables := graphql.GetOperationContext(ctx).Variables
	about, ok := subject(plan, variables)
	if !ok {
		return question{}, false
	}
	text, err := json.Marshal(variables) // sorted by name
	if err != nil || len(text) > maxVariables {
		return question{}, false
	}
	by := credential.ID()
	return question{key: key{plan: plan, variables: string(text), rights: a.store.rightsOf(by)}, credential: by,
		about: about}, true
}

// Shown returns how many answers were shown again.
func (a *Answers) Shown() int64 { return a.shown.Load() }

// Fresh returns how many answers that could be kept were read.
func (a *Answers) Fresh() int64 { return a.fresh.Load() }

// Size returns how many answers are kept, and how many bytes they take.
func (a *Answers) Size() (answers, bytes int) { return a.store.size() }
