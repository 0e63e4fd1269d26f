package masks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Hidden is what is shown in the place of a secret.
const Hidden = "[masked]"

const (
	// minSecret is the shortest secret that is hidden, in bytes, and minLine the shortest line of one with several.
	minSecret, minLine = 4, 8
	// minCut is the shortest part of a secret that is hidden where a long line was cut.
	minCut = 3
	// maxPattern bounds what is compared at once; a longer secret is hidden piece by piece.
	maxPattern = 1 << 10
)

// wraps are the lengths at which tools break lines of base64.
var wraps = []int{64, 76}

// Set finds secrets. The zero value finds none. It is not changed once it is in use.
type Set struct {
	patterns map[string]bool
	byStart  map[[minSecret]byte][]string
}

// NewSet makes a set of secrets.
func NewSet(secrets [][]byte) *Set {
	s := &Set{patterns: map[string]bool{}, byStart: map[[minSecret]byte][]string{}}
	for _, secret := range secrets {
		s.add(secret)
	}
	for pattern := range s.patterns {
		start := [minSecret]byte([]byte(pattern))
		s.byStart[start] = append(s.byStart[start], pattern)
	}
	return s
}

// add adds every form of a secret.
func (s *Set) add(secret []byte) {
	trimmed := bytes.TrimSpace(secret)
	if len(trimmed) < minSecret {
		return
	}
	for _, whole := range [][]byte{secret, trimmed} {
		s.forms(whole)
	}
	lines := bytes.Split(trimmed, []byte{'\n'})
	if len(lines) == 1 {
		return
	}
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) >= minLine {
			s.forms(line)
		}
	}
}

func (s *Set) forms(secret []byte) {
	text := string(secret)
	s.pattern(text)
	query, path := url.QueryEscape(text), url.PathEscape(text)
	for _, escaped := range []string{query, path, strings.ReplaceAll(query, "+", "%20")} {
		s.pattern(escaped)
		s.pattern(lowerEscapes(escaped))
	}
	if quoted, err := json.Marshal(text); err == nil {
		s.pattern(strings.Trim(string(quoted), `"`))
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		s.base64(encoding, secret)
	}
}

// lowerEscapes writes the digits of %2F in lower case.
func lowerEscapes(escaped string) string {
	raw := []byte(escaped)
	for i := 0; i+2 < len(raw); i++ {
		if raw[i] == '%' {
			copy(raw[i+1:i+3], bytes.ToLower(raw[i+1:i+3]))
		}
	}
	return string(raw)
}

// base64 adds the encodings of a secret that begins at any byte of a longer text: in each, the characters that the
// secret alone decides.
func (s *Set) base64(encoding *base64.Encoding, secret []byte) {
	whole := encoding.EncodeToString(secret)
	s.pattern(whole)
	s.pattern(url.QueryEscape(whole))
	for _, wrap := range wraps {
		for line := range slices.Chunk([]byte(whole), wrap) {
			if len(whole) > wrap && len(line) >= minLine {
				s.pattern(string(line))
			}
		}
	}
	for before := range 3 {
		coded := encoding.EncodeToString(append(make([]byte, before), secret...))
		bits := 8 * (before + len(secret))
		if inner := coded[(8*before+5)/6 : bits/6]; len(inner) >= minLine {
			s.pattern(inner)
		}
	}
}

func (s *Set) pattern(text string) {
	for len(text) > maxPattern+minSecret {
		s.patterns[text[:maxPattern]] = true
		text = text[maxPattern:]
	}
	if len(text) >= minSecret {
		s.patterns[text] = true
	}
}

// Text is a line, or a part of one that goes on after it, or came before.
type Text struct {
	Bytes           []byte
	Before, Follows bool
}

// Hide returns the text with what is found of secrets in it replaced. Where a line was cut, the beginning and the end
// of a secret are found too.
func (s *Set) Hide(text Text) []byte {
	if s == nil || len(s.patterns) == 0 {
		return text.Bytes
	}
	spans := s.find(text.Bytes)
	if text.Before {
		if n := s.endsOne(text.Bytes); n > 0 {
			spans = append(spans, span{0, n})
		}
	}
	if text.Follows {
		if n := s.beginsOne(text.Bytes); n > 0 {
			spans = append(spans, span{len(text.Bytes) - n, len(text.Bytes)})
		}
	}
	return replace(text.Bytes, spans)
}

// span is a range of bytes.
type span struct{ from, to int }

func (s *Set) find(text []byte) (spans []span) {
	for i := 0; i+minSecret <= len(text); i++ {
		longest := 0
		for _, pattern := range s.byStart[[minSecret]byte(text[i:])] {
			if len(pattern) > longest && len(pattern) <= len(text)-i && string(text[i:i+len(pattern)]) == pattern {
				longest = len(pattern)
			}
		}
		if longest > 0 {
			spans = append(spans, span{i, i + longest})
		}
	}
	return spans
}

// endsOne returns how many bytes at the beginning are the end of a secret.
func (s *Set) endsOne(text []byte) (longest int) {
	for pattern := range s.patterns {
		for n := min(len(pattern)-1, len(text)); n >= max(minCut, longest+1); n-- {
			if pattern[len(pattern)-n:] == string(text[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// beginsOne returns how many bytes at the end are the beginning of a secret.
func (s *Set) beginsOne(text []byte) (longest int) {
	for pattern := range s.patterns {
		for n := min(len(pattern)-1, len(text)); n >= max(minCut, longest+1); n-- {
			if pattern[:n] == string(text[len(text)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

// replace writes Hidden once for each run of spans that touch each other.
func replace(text []byte, spans []span) []byte {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out []byte
	end := 0
	for i, one := range spans {
		if i == 0 || one.from > end {
			out = append(append(out, text[end:one.from]...), Hidden...)
		}
		end = max(end, one.to)
	}
	return append(out, text[end:]...)
}
