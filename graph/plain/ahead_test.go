package plain_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/graph/plain"
)

var crowd = gqlparser.MustLoadSchema(&ast.Source{Input: `
	type Query { people: [Person!]! one: Person! }
	type Person { name: String! friend: Person friends: [Person!]! age: Int! first: Person! broken: Person }`})

type person struct{ n int }

// meeting blocks its callers until so many have come, again and again; it gives up with its context.
type meeting struct {
	of    int
	mu    sync.Mutex
	come  int
	begin chan struct{}
}

func newMeeting(of int) *meeting { return &meeting{of: of, begin: make(chan struct{})} }

func (m *meeting) join(ctx context.Context) error {
	m.mu.Lock()
	begin := m.begin
	if m.come++; m.come == m.of {
		close(begin)
		m.come, m.begin = 0, make(chan struct{})
	}
	m.mu.Unlock()
	select {
	case <-begin:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// peopleTables answer three people. Friends and ages come only once all requests of a level have come together; the
// last person has no friend.
func peopleTables(m *meeting) *plain.Type {
	table := &plain.Type{Name: "Person"}
	of := func() *plain.Type { return table }
	friend := plain.One(of, func(ctx context.Context, p *person, _ plain.Args) (*person, error) {
		if p.n == 2 {
			return nil, m.join(ctx)
		}
		return &person{p.n + 10}, m.join(ctx)
	})
	table.Fields = map[string]plain.Field{
		"name":   plain.Leaf(func(dst []byte, p *person) []byte { return plain.String(dst, strconv.Itoa(p.n)) }),
		"friend": friend.Gathered(),
		"first":  plain.One(of, func(_ context.Context, p *person, _ plain.Args) (*person, error) { return p, nil }),
		"friends": plain.Many(of, func(ctx context.Context, p *person, _ plain.Args) ([]*person, error) {
			return []*person{{p.n + 100}, {p.n + 200}}[:p.n%3], m.join(ctx)
		}).Gathered(),
		"age": plain.Value(func(ctx context.Context, p *person, _ plain.Args) (int, error) {
			return p.n, m.join(ctx)
		}, plain.Int).Gathered(),
		"broken": plain.One(of, func(context.Context, *person, plain.Args) (*person, error) {
			panic("broken")
		}).Gathered(),
	}
	return &plain.Type{Name: "Query", Fields: map[string]plain.Field{
		"people": plain.Many(of, func(context.Context, *plain.Root, plain.Args) ([]*person, error) {
			return []*person{{0}, {1}, {2}}, nil
		}),
		"one": plain.One(of, func(context.Context, *plain.Root, plain.Args) (*person, error) {
			return &person{1}, nil
		}),
	}}
}

func TestGatheredFieldsAreTakenOfAllAtOnce(t *testing.T) {
	t.Parallel()
	for document, one := range map[string]struct {
		meet int
		want string
	}{
		`{ people { name age } }`: {3, `{"people":[{"name":"0","age":0},{"name":"1","age":1},{"name":"2","age":2}]}`},
		`{ people { friend { name } name } }`: {3,
			`{"people":[{"friend":{"name":"10"},"name":"0"},{"friend":{"name":"11"},"name":"1"},{"friend":null,"name":"2"}]}`},
		// Two fields of three people meet as six.
		`{ people { age a: age } }`: {6, `{"people":[{"age":0,"a":0},{"age":1,"a":1},{"age":2,"a":2}]}`},
		// Those below meet too: none, one and two friends are three.
		`{ people { friends { age name } } }`: {3,
			`{"people":[{"friends":[]},{"friends":[{"age":101,"name":"101"}]},{"friends":[{"age":102,"name":"102"},{"age":202,"name":"202"}]}]}`},
		// A field in between that waits for nothing does not separate those below it.
		`{ people { first { age } } }`: {3, `{"people":[{"first":{"age":0}},{"first":{"age":1}},{"first":{"age":2}}]}`},
		// Of one object its fields meet.
		`{ one { age friend { name } } }`: {2, `{"one":{"age":1,"friend":{"name":"11"}}}`},
	} {
		got, ok := answerPeople(t, document, newMeeting(one.meet))
		require.True(t, ok, document)
		require.Equal(t, one.want, got, document)
	}
}

func TestAPanicOfAGatheredFieldLeavesTheQueryToTheExecutor(t *testing.T) {
	t.Parallel()
	_, ok := answerPeople(t, `{ people { broken { name } } }`, newMeeting(1))
	require.False(t, ok)
}

func answerPeople(t *testing.T, document string, m *meeting) (string, bool) {
	t.Helper()
	doc, errs := gqlparser.LoadQueryWithRules(crowd, document, nil)
	require.Empty(t, errs, document)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ctx = graphql.WithOperationContext(ctx, &graphql.OperationContext{
		RawQuery: document, Doc: doc, Operation: doc.Operations[0], Variables: map[string]any{},
	})
	response, ok := plain.New(peopleTables(m)).Answer(ctx)
	if !ok {
		return "", false
	}
	return string(response.Data), true
}
