// Package render writes what appctl answers: JSON for scripts, aligned tables for people. Text that came from a
// server is stripped of control characters, so that no message can steer a terminal.
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

const padding = 2

// JSON writes the value as one indented document.
func JSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// JSONLine writes the value on one line.
func JSONLine(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// Page is a sequence of tables and field lists.
type Page struct{ out io.Writer }

// NewPage writes to w.
func NewPage(w io.Writer) *Page { return &Page{out: w} }

// Table writes a heading line and rows, aligned; without rows it writes "none".
func (p *Page) Table(heading []string, rows [][]string) {
	if len(rows) == 0 {
		fmt.Fprintln(p.out, "none")
		return
	}
	w := tabwriter.NewWriter(p.out, 0, 0, padding, ' ', 0)
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(cleanAll(row), "\t"))
	}
	_ = w.Flush()
}

// Fields writes name and value pairs, aligned; pairs with an empty value are left out.
func (p *Page) Fields(pairs ...string) {
	w := tabwriter.NewWriter(p.out, 0, 0, padding, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%s:\t%s\n", pairs[i], Clean(pairs[i+1]))
		}
	}
	_ = w.Flush()
}

// Section writes an empty line and a title.
func (p *Page) Section(title string) { fmt.Fprintf(p.out, "\n%s\n", title) }

// Line writes one line.
func (p *Page) Line(text string) { fmt.Fprintln(p.out, Clean(text)) }

func cleanAll(row []string) []string {
	cleaned := make([]string, len(row))
	for i, cell := range row {
		if cleaned[i] = Clean(cell); cleaned[i] == "" {
			cleaned[i] = "-"
		}
	}
	return cleaned
}

// Clean returns the text on one line without control characters.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}, text)
}
