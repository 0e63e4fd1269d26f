// Package posix derives names of POSIX accounts from the names of people and service accounts.
package posix

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// FirstID and LastID bound the ids that a tenant gives: above those of a system's own accounts, and inside of the ids
// of every member.
const (
	FirstID = 1_000
	LastID  = 59_999
)

// MaxName bounds a name, in bytes.
const MaxName = 31

// anonymous is the name for a person whose texts give no name.
const anonymous = "user"

//go:embed reserved.txt
var document string

// reserved are names that systems give to accounts and groups of their own. None ends in a digit: a number at its end
// makes each a free name.
var reserved = names(document)

// names reads a name from each line that is not empty and not a comment.
func names(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
}

// Reserved lists the names that no account gets unchanged.
func Reserved() []string { return slices.Clone(reserved) }

// IsReserved reports whether no account gets the name unchanged.
func IsReserved(name string) bool { return slices.Contains(reserved, name) }

// Name returns a name from the first text that holds a letter or a digit of ASCII: lower case, without accents, each
// run of other characters a dash, of at most MaxName bytes. It begins with a letter and does not end in a dash. It may
// be reserved, or already in use.
func Name(texts ...string) string {
	for _, text := range texts {
		if name := plain(text); name != "" {
			return name
		}
	}
	return anonymous
}

func plain(text string) string {
	var name []byte
	for _, r := range norm.NFKD.String(text) {
		r = unicode.ToLower(r)
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			name = append(name, byte(r)) //nolint:gosec // of ASCII
		case unicode.Is(unicode.Mn, r): // the accent of the letter before
		case len(name) > 0 && name[len(name)-1] != '-':
			name = append(name, '-')
		}
	}
	if len(name) > 0 && name[0] <= '9' { // a dash never comes first
		name = append([]byte{'u'}, name...)
	}
	return strings.TrimRight(string(name[:min(len(name), MaxName)]), "-")
}
