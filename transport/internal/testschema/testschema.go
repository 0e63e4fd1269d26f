// Package testschema is a small executable schema for the transports' own tests: every
// kind of operation, failure and list, and nothing of the platform's.
//
// generated is written by go generate.
package testschema

//go:generate go run github.com/99designs/gqlgen generate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/internal/testschema/generated"
	"github.com/gpuaas/app-platform/transport/internal/testschema/record"
)

// ErrKnown is an error that Present maps to CONFLICT.
var ErrKnown = errors.New("known failure")

// Present maps ErrKnown, and leaves all else to the engine.
func Present(_ context.Context, err error) *gqlerror.Error {
	if !errors.Is(err, ErrKnown) {
		return nil
	}
	return &gqlerror.Error{Message: "it clashes", Extensions: map[string]any{"code": "CONFLICT"}}
}

type callerKey struct{}

// WithCaller names the caller that whoami answers.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

// Caller is the name put in by WithCaller.
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// Schema resolves the test schema. Running counts, by field, the resolvers at work.
type Schema struct {
	// Entered receives once for each slow or silence resolver that begins.
	Entered chan struct{}
	// Left receives once for each that ends.
	Left chan struct{}
}

// New makes a schema whose signals never block it.
func New() *Schema {
	return &Schema{Entered: make(chan struct{}, 10_000), Left: make(chan struct{}, 10_000)}
}

// Executable is what an engine runs.
func (s *Schema) Executable() graphql.ExecutableSchema {
	return generated.NewExecutableSchema(generated.Config{Resolvers: s})
}

// Query implements the generated root.
func (s *Schema) Query() generated.QueryResolver { return query{s} }

// Mutation implements the generated root.
func (s *Schema) Mutation() generated.MutationResolver { return mutation{s} }

// Subscription implements the generated root.
func (s *Schema) Subscription() generated.SubscriptionResolver { return subscription{s} }

type query struct{ *Schema }

func (query) Hello(_ context.Context, name *string) (string, error) {
	if name == nil {
		return "hello", nil
	}
	return "hello " + *name, nil
}

func (query) Echo(_ context.Context, input generated.EchoInput) (string, error) {
	return strings.Repeat(input.Text, min(max(*input.Times, 0), 10)), nil
}

func (query) Whoami(ctx context.Context) (string, error) { return Caller(ctx), nil }

func (query) Correlation(ctx context.Context) (string, error) {
	return transport.CorrelationID(ctx), nil
}

func (query) Item(_ context.Context, id string) (*record.Item, error) {
	return &record.Item{ID: id, Name: "item " + id}, nil
}

func (query) Items(_ context.Context, first, last *int, _ *string) (*record.Connection, error) {
	return record.Page("i", first, last), nil
}

func (query) Everything(context.Context) ([]*record.Item, error) { return record.Items("e", 3), nil }

func (query) Pages(_ context.Context, first *int) ([]*record.Item, error) {
	return record.Items("p", *first), nil
}

func (query) Fail(_ context.Context, how generated.Failure) (*string, error) {
	switch how {
	case generated.FailureKnown:
		return nil, fmt.Errorf("wrapped: %w", ErrKnown)
	case generated.FailurePanic:
		panic("SELECT secret FROM stack")
	default:
		return nil, errors.New("pq: relation \"secret\" does not exist")
	}
}

func (q query) Slow(ctx context.Context) (string, error) {
	q.Entered <- struct{}{}
	<-ctx.Done()
	q.Left <- struct{}{}
	return "", transport.Refuse(transport.CodeDeadlineExceeded, "out of time")
}

type mutation struct{ *Schema }

func (mutation) Touch(_ context.Context, id string) (*record.Item, error) {
	return &record.Item{ID: id, Name: "touched"}, nil
}

type subscription struct{ *Schema }

func (subscription) Count(ctx context.Context, to int) (<-chan int, error) {
	out := make(chan int)
	go func() {
		defer close(out)
		for i := 1; i <= to; i++ {
			select {
			case out <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (s subscription) Silence(ctx context.Context) (<-chan int, error) {
	out := make(chan int)
	s.Entered <- struct{}{}
	go func() {
		<-ctx.Done()
		close(out)
		s.Left <- struct{}{}
	}()
	return out, nil
}

func (subscription) Refused(context.Context) (<-chan int, error) { return nil, ErrKnown }

func (subscription) Topic(context.Context, string) (<-chan string, error) {
	return nil, errors.New("topic is served by a stream")
}
