package columns

import (
	"regexp"
	"strings"
)

// pieces are the comments, texts, names, parameters and signs of a statement.
var pieces = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"[^"]*"|[A-Za-z_][A-Za-z0-9_]*|\$[0-9]+` +
	`|::|<>|!=|<=|>=|->>|->|\|\||\S`)

// sql is a statement in pieces: names in lower case, texts with their quotes, no comments and no casts.
type sql []string

// lex returns the pieces of a statement, and false when a text in it does not end: it is a fragment then, of which no
// one knows which half of it is text.
func lex(statement string) (s sql, whole bool) {
	for _, piece := range pieces.FindAllString(statement, -1) {
		switch {
		case strings.HasPrefix(piece, "--"), strings.HasPrefix(piece, "/*"):
		case piece == "'":
			return nil, false
		case piece[0] == '"':
			s = append(s, strings.Trim(piece, `"`))
		case piece[0] == '\'':
			s = append(s, piece)
		default:
			s = append(s, strings.ToLower(piece))
		}
	}
	return s.withoutCasts().withoutParentheses(), true
}

// withoutCasts leaves out each :: with the type that follows it.
func (s sql) withoutCasts() (left sql) {
	for i := 0; i < len(s); i++ {
		if s[i] != "::" {
			left = append(left, s[i])
			continue
		}
		i++
		for s.at(i+1) == "." {
			i += 2
		}
		for s.at(i+1) == "[" && s.at(i+2) == "]" {
			i += 2
		}
	}
	return left
}

// withoutParentheses leaves out the ones around a single name, as PostgreSQL writes them: ((status)::text = 'READY').
func (s sql) withoutParentheses() (left sql) {
	for i := 0; i < len(s); i++ {
		if s[i] == "(" && isName(s.at(i+1)) && s.at(i+2) == ")" && (i == 0 || opens[s[i-1]]) {
			left = append(left, s[i+1])
			i += 2
			continue
		}
		left = append(left, s[i])
	}
	return left
}

// opens are the pieces after which a parenthesis is neither a call's nor a list's.
var opens = map[string]bool{"(": true, "and": true, "or": true, "where": true, "not": true, "when": true, "case": true}

// at returns the piece at a place; empty outside of the statement.
func (s sql) at(i int) string {
	if i < 0 || i >= len(s) {
		return ""
	}
	return s[i]
}

// isName reports whether the piece is a name or a keyword.
func isName(piece string) bool {
	return piece != "" && (piece[0] == '_' || piece[0] >= 'a' && piece[0] <= 'z')
}

// isText reports whether the piece is a text.
func isText(piece string) bool { return strings.HasPrefix(piece, "'") }

// unquoted returns what a text says.
func unquoted(piece string) string { return strings.ReplaceAll(piece[1:len(piece)-1], "''", "'") }
