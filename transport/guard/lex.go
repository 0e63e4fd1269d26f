package guard

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
)

// Lex counts the tokens, nesting, aliases, root fields, spreads and directives of a document's
// text, without building anything. It stops at the first bound that is passed.
func (g *Guard) Lex(document string) *Error {
	if len(document) > g.limits.Bytes {
		return tooLarge(0, 0, "the document is longer than %d bytes", g.limits.Bytes)
	}
	s := scan{limits: &g.limits}
	lex := lexer.New(&ast.Source{Input: document})
	for {
		token, err := lex.ReadToken()
		if err != nil {
			return invalid(token.Pos.Line, token.Pos.Column, "syntax error")
		}
		if token.Kind == lexer.EOF {
			return nil
		}
		if refusal := s.token(&token); refusal != nil {
			return refusal
		}
	}
}

// scan is the state of one pass over the tokens. It knows just enough of the grammar to
// distinguish a field from an argument: names count only between braces, outside parentheses.
type scan struct {
	limits *Limits

	tokens, aliases, spreads, directives, operations int

	selections int // open braces of selection sets
	values     int // open parentheses, brackets, and braces inside them
	roots      int // fields at the root of the current operation
	inFragment bool

	prev   lexer.Type
	prevOn bool // the previous token is the `on` of a type condition
}

func (s *scan) token(t *lexer.Token) *Error {
	s.tokens++
	if s.tokens > s.limits.Tokens {
		return s.over(t, s.tokens, s.limits.Tokens, "tokens")
	}
	if t.Kind == lexer.Comment {
		return nil
	}
	refusal := s.count(t)
	s.prevOn = t.Kind == lexer.Name && t.Value == "on" && s.prev == lexer.Spread
	s.prev = t.Kind
	return refusal
}

func (s *scan) count(t *lexer.Token) *Error {
	switch t.Kind {
	case lexer.BraceL, lexer.ParenL, lexer.BracketL:
		return s.open(t)
	case lexer.BraceR, lexer.ParenR, lexer.BracketR:
		return s.close(t)
	case lexer.Spread:
		s.spreads++
		return s.over(t, s.spreads, s.limits.Spreads, "fragment spreads")
	case lexer.At:
		s.directives++
		return s.over(t, s.directives, s.limits.Directives, "directives")
	case lexer.Colon:
		return s.colon(t)
	case lexer.Name:
		return s.name(t)
	default:
		return nil
	}
}

func (s *scan) open(t *lexer.Token) *Error {
	if t.Kind != lexer.BraceL || s.values > 0 {
		s.values++
		return s.over(t, s.values, s.limits.ValueDepth, "nested values")
	}
	if s.selections == 0 && s.startsDefinition() {
		if refusal := s.operation(t); refusal != nil {
			return refusal
		}
	}
	s.selections++
	return s.over(t, s.selections, s.limits.Depth, "nested selection sets")
}

func (s *scan) close(t *lexer.Token) *Error {
	switch {
	case s.values > 0:
		s.values--
	case s.selections > 0 && t.Kind == lexer.BraceR:
		s.selections--
		if s.selections == 0 {
			s.inFragment = false
		}
	default:
		return invalid(t.Pos.Line, t.Pos.Column, "syntax error")
	}
	return nil
}

func (s *scan) operation(t *lexer.Token) *Error {
	s.operations++
	s.roots = 0
	return s.over(t, s.operations, s.limits.Operations, "operations")
}

// colon turns the name before it from a field into an alias.
func (s *scan) colon(t *lexer.Token) *Error {
	if s.prev != lexer.Name || s.values > 0 || s.selections == 0 {
		return nil
	}
	s.aliases++
	if s.selections == 1 && !s.inFragment {
		s.roots--
	}
	return s.over(t, s.aliases, s.limits.Aliases, "aliases")
}

func (s *scan) name(t *lexer.Token) *Error {
	switch {
	case len(t.Value) > s.limits.NameLength:
		return tooLarge(t.Pos.Line, t.Pos.Column, "a name is longer than %d bytes", s.limits.NameLength)
	case s.prev == lexer.At && (t.Value == "defer" || t.Value == "stream"):
		return invalid(t.Pos.Line, t.Pos.Column, "incremental delivery (@defer, @stream) is not served")
	case s.prev == lexer.At, s.values > 0:
		return nil
	case s.selections == 0:
		return s.definition(t)
	case s.selections > 1, s.inFragment, s.prev == lexer.Spread, s.prevOn:
		return nil
	}
	s.roots++
	return s.over(t, s.roots, s.limits.RootFields, "root fields")
}

func (s *scan) definition(t *lexer.Token) *Error {
	if !s.startsDefinition() {
		return nil // an operation's or fragment's own name
	}
	s.inFragment = t.Value == "fragment"
	if s.inFragment {
		return nil
	}
	return s.operation(t)
}

// startsDefinition: outside every brace, only another definition's end can come before.
func (s *scan) startsDefinition() bool {
	return s.prev == lexer.Invalid || s.prev == lexer.BraceR
}

func (s *scan) over(t *lexer.Token, have, limit int, what string) *Error {
	if have <= limit {
		return nil
	}
	return tooLarge(t.Pos.Line, t.Pos.Column, "the document has more than %d %s", limit, what)
}
