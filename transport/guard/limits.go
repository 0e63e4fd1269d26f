package guard

import "fmt"

// Limits are the bounds of one document. A zero field takes its default.
type Limits struct {
	Bytes          int   // of the document's text; 64 KiB
	Tokens         int   // comments included; 5,000
	NameLength     int   // bytes of one name; 256
	Depth          int   // nested selection sets, fragments followed; 30
	ValueDepth     int   // nested parentheses, lists and objects of arguments; 30
	Aliases        int   // in the document; 50
	RootFields     int   // of one operation, fragments followed; 20
	Operations     int   // in the document; 20
	Spreads        int   // fragment spreads and inline fragments in the document; 300
	Directives     int   // in the document; 100
	ExpandedFields int   // selections once every fragment is expanded, whole document; 10,000
	Repeats        int   // pairs of selections that answer under one name in one object; 20,000
	Cost           int64 // of one operation, see Plan.Cost; 50,000

	DefaultPage int64    // rows counted for a page argument that is not given; 50
	DefaultList int64    // rows counted for a list that takes no page argument; 10
	PageArgs    []string // arguments that set a page size; first, last

	// Introspection allows __schema and __type.
	Introspection bool
}

// DefaultLimits are the bounds of the platform's public endpoint, introspection off.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.Bytes, 64 << 10}, {&l.Tokens, 5000}, {&l.NameLength, 256}, {&l.Depth, 30}, {&l.ValueDepth, 30},
		{&l.Aliases, 50}, {&l.RootFields, 20}, {&l.Operations, 20}, {&l.Spreads, 300}, {&l.Directives, 100},
		{&l.ExpandedFields, 10_000}, {&l.Repeats, 20_000},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{{&l.Cost, 50_000}, {&l.DefaultPage, 50}, {&l.DefaultList, 10}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if len(l.PageArgs) == 0 {
		l.PageArgs = []string{"first", "last"}
	}
	return l
}

// Kind says how a document was refused.
type Kind int

const (
	// TooLarge: the document is well formed but over a bound.
	TooLarge Kind = iota
	// Invalid: the document is malformed, or uses what is not served here.
	Invalid
)

// Error is a refusal. Its text is safe to show: it holds no part of the document.
type Error struct {
	Kind         Kind
	Message      string
	Line, Column int // 1-based; 0 when the refusal concerns the whole document
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func tooLarge(line, column int, format string, args ...any) *Error {
	return &Error{Kind: TooLarge, Message: fmt.Sprintf(format, args...), Line: line, Column: column}
}

func invalid(line, column int, message string) *Error {
	return &Error{Kind: Invalid, Message: message, Line: line, Column: column}
}
