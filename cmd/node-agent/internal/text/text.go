// Package text makes what programs print fit to be stored as text: valid UTF-8, no NUL (a database
// text column takes neither), cut at character boundaries.
package text

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// Cleaner turns a byte stream into clean text, piece by piece. However the stream is cut, the
// concatenated output is the same, so offsets into it are stable across a repeated delivery.
type Cleaner struct{ held []byte }

// Write takes the next bytes and gives the text that is certain by now; an incomplete character at
// the end is held back.
func (c *Cleaner) Write(data []byte) string {
	c.held = append(c.held, data...)
	text, rest := clean(c.held, false)
	c.held = append(c.held[:0], rest...)
	return text
}

// Close gives what was held back.
func (c *Cleaner) Close() string {
	text, _ := clean(c.held, true)
	c.held = nil
	return text
}

// Clean is the whole of data as clean text.
func Clean(data []byte) string {
	text, _ := clean(data, true)
	return text
}

// Tail is the last limit bytes of s at most, cut at a character boundary.
func Tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := len(s) - limit
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return s[cut:]
}

// Head is the first limit bytes of s at most, cut at a character boundary.
func Head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func clean(data []byte, final bool) (string, []byte) {
	var out strings.Builder
	out.Grow(len(data))
	for len(data) > 0 {
		if !final && !utf8.FullRune(data) {
			break
		}
		r, size := utf8.DecodeRune(data)
		if r == 0 || (r == utf8.RuneError && size == 1) {
			out.WriteString(replacement)
		} else {
			out.Write(data[:size])
		}
		data = data[size:]
	}
	return out.String(), data
}
