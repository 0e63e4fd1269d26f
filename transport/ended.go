package transport

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Ended is one answered operation, for a log of requests. It has neither arguments nor the name that the caller gave
// its operation, since both may be any text.
type Ended struct {
	// Kind is query, mutation or subscription; "" when the request was refused before its document was understood.
	Kind string
	// Verbs are the schema's names of the root fields, each once, in order.
	Verbs []string
	// Code is that of the first error; "" when there was none.
	Code string
	// Cost is the number of values that the operation may request.
	Cost int64
	// Took is the time from the request's arrival to the answer; of a subscription, until it had begun.
	Took time.Duration
}

// report is an operation that is not answered yet.
type report struct {
	began time.Time
	once  sync.Once
	Ended
}

type reportKey struct{}

// Begin returns the context of Config.Began. End reports its operation to Config.Ended; nothing is kept when Ended is
// not set.
func (e *Engine) Begin(ctx context.Context) context.Context {
	if e.config.Began != nil {
		ctx = e.config.Began(ctx)
	}
	if e.config.Ended == nil {
		return ctx
	}
	return context.WithValue(ctx, reportKey{}, &report{began: time.Now()})
}

// End reports the operation that began in ctx, with its answer's errors, to Config.Ended. Later calls do nothing.
func (e *Engine) End(ctx context.Context, list gqlerror.List) {
	r, ok := ctx.Value(reportKey{}).(*report)
	if !ok {
		return
	}
	r.once.Do(func() {
		r.Took = time.Since(r.began)
		if len(list) > 0 {
			r.Code = Code(list[0])
		}
		e.config.Ended(ctx, &r.Ended)
	})
}

// reported notes the kind, the cost and the root fields of ctx's operation.
func reported(ctx context.Context, op *graphql.OperationContext, cost int64) {
	r, ok := ctx.Value(reportKey{}).(*report)
	if !ok {
		return
	}
	r.Kind, r.Cost = string(op.Operation.Operation), cost
	for _, each := range Roots(op) { // at most guard.Limits.RootFields
		if !slices.Contains(r.Verbs, each.Name) {
			r.Verbs = append(r.Verbs, each.Name)
		}
	}
}

// Roots returns the root fields that an operation selects, with those of its fragments.
func Roots(op *graphql.OperationContext) []graphql.CollectedField {
	return graphql.CollectFields(op, op.Operation.SelectionSet, rootTypes)
}

// rootTypes are the names of the schema's root types, which fragments of an operation may be on.
var rootTypes = []string{"Query", "Mutation", "Subscription"}
