package contracttest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/contracttest"
)

// first is a small contract; each change below is applied to it.
const first = `
interface Node { id: ID! }
type Thing implements Node { id: ID! name: String! note: String tags: [String]! parts(first: Int = 10, after: String, kind: Kind): [Part!] }
type Part { id: ID! }
type Rest { id: ID! }
union Any = Thing | Part
enum Kind { BIG SMALL }
input Make { name: String! note: String count: Int! = 1 tags: [String!] }
type Query { thing(id: ID!): Thing, any: Any, rest: Rest }
type Mutation { make(input: Make!): Thing! }
`

func TestBreakingChangesAreNamed(t *testing.T) {
	t.Parallel()
	changes := []struct{ name, old, now, want string }{
		{"a type goes", "type Rest { id: ID! }", "", "type Rest was removed"},
		{"a type changes its kind", "enum Kind { BIG SMALL }", "scalar Kind", "type Kind was ENUM and is SCALAR"},
		{"a field goes", "note: String tags: [String]!", "tags: [String]!", "field Thing.note was removed"},
		{"a field changes its type", "name: String! note: String tags", "name: Int! note: String tags",
			"field Thing.name was String! and is Int!"},
		{"a field may be null now", "implements Node { id: ID! name: String!", "implements Node { id: ID! name: String",
			"field Thing.name was String! and is String"},
		{"elements may be null now", "[Part!]", "[Part]", "field Thing.parts was [Part!] and is [Part]"},
		{"a list becomes one", "[Part!]", "Part", "field Thing.parts was [Part!] and is Part"},
		{"an argument goes", "first: Int = 10, after: String,", "first: Int = 10,",
			"argument Thing.parts(after) was removed"},
		{"an argument changes its type", "after: String,", "after: ID,",
			"argument Thing.parts(after) was String and is ID"},
		{"an argument becomes required", "after: String,", "after: String!,",
			"argument Thing.parts(after) was String and is String!"},
		{"an argument is new and required", "after: String,", "after: String, all: Boolean!,",
			"argument Thing.parts(all) is new and required"},
		{"a default changes", "first: Int = 10", "first: Int = 50",
			"the default of argument Thing.parts(first) was 10 and is 50"},
		{"a default goes", "count: Int! = 1", "count: Int", "the default of input field Make.count was 1 and is none"},
		{"an enum value goes", "BIG SMALL", "BIG", "enum value Kind.SMALL was removed"},
		{"an input field goes", "note: String count", "count", "input field Make.note was removed"},
		{"an input field is new and required", "note: String count", "note: String size: Int! count",
			"input field Make.size is new and required"},
		{"an input field becomes required", "note: String count", "note: String! count",
			"input field Make.note was String and is String!"},
		{"an input's elements", "tags: [String!] }", "tags: [Int!] }",
			"input field Make.tags was [String!] and is [Int!]"},
		{"an interface goes", "Thing implements Node", "Thing", "type Thing no longer implements Node"},
		{"a union narrows", "Thing | Part", "Thing", "union Any no longer holds Part"},
	}
	before, err := contracttest.ParseSchema(first)
	require.NoError(t, err)
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(first, change.old, change.now, 1)
			require.NotEqual(t, first, text)
			if change.now == "" {
				text = strings.Replace(text, ", rest: Rest", "", 1)
			}
			after, err := contracttest.ParseSchema(text)
			require.NoError(t, err)
			require.Contains(t, contracttest.Breaking(before, after), change.want)
		})
	}
}

func TestAdditionsAndWideningsBreakNothing(t *testing.T) {
	t.Parallel()
	before, err := contracttest.ParseSchema(first)
	require.NoError(t, err)
	for _, change := range []struct{ name, old, now string }{
		{"nothing", "note: String", "note: String"},
		{"a type", "union Any", "type More { id: ID! }\nunion Any"},
		{"a field", "note: String tags: [String]!", "note: String more: Int tags: [String]!"},
		{"never null where it could be", "note: String tags: [String]!", "note: String! tags: [String!]!"},
		{"an optional argument", "after: String,", "after: String, before: String,"},
		{"a new argument with a default", "after: String,", "after: String, size: Int! = 3,"},
		{"an argument no longer required", "thing(id: ID!)", "thing(id: ID)"},
		{"required, with a default for who leaves it out", "note: String count", "note: String! = \"\" count"},
		{"an enum value", "BIG SMALL", "BIG SMALL TINY"},
		{"an optional input field", "note: String count", "note: String more: Int count"},
		{"an input field no longer required", "input Make { name: String!", "input Make { name: String"},
		{"a wider union", "Thing | Part", "Thing | Part | Rest"},
	} {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			after, err := contracttest.ParseSchema(strings.Replace(first, change.old, change.now, 1))
			require.NoError(t, err)
			require.Empty(t, contracttest.Breaking(before, after))
		})
	}
}
