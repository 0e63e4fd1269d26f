package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	barWidth = 24
	maxLine  = 100
)

// Progress shows how far something is: a bar that redraws itself on a terminal, a line for each change elsewhere.
type Progress struct {
	out      io.Writer
	terminal bool
	last     string
	noted    string
	drawn    bool
}

// NewProgress writes to out; terminal says whether it can redraw a line.
func NewProgress(out io.Writer, terminal bool) *Progress {
	return &Progress{out: out, terminal: terminal}
}

// Show shows a state, a percentage from 0 to 100, a phase and a message; what has not changed is not repeated.
func (p *Progress) Show(state string, percent int, phase, message string) {
	text := Clean(strings.TrimSpace(phase + "  " + message))
	line := fmt.Sprintf("%-12s %3d%%  %s", state, percent, text)
	if p.terminal {
		line = fmt.Sprintf("%s %3d%%  %s  %s", bar(percent), percent, state, text)
	}
	if line = cut(line, maxLine); line == p.last {
		return
	}
	p.last = line
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[2K%s", line)
		p.drawn = true
		return
	}
	fmt.Fprintln(p.out, strings.TrimRight(line, " "))
}

// Note writes a line of its own above the bar; the same line again is not repeated until another came.
func (p *Progress) Note(text string) {
	line := Clean(text)
	if line == p.noted {
		return
	}
	p.noted = line
	if p.drawn {
		fmt.Fprintf(p.out, "\r\x1b[2K%s\n%s", line, p.last)
		return
	}
	fmt.Fprintln(p.out, line)
}

// Done ends the bar's line, so that what follows begins on its own.
func (p *Progress) Done() {
	if p.drawn {
		fmt.Fprintln(p.out)
		p.drawn = false
	}
}

func bar(percent int) string {
	full := min(max(percent, 0), 100) * barWidth / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

// cut bounds the line by characters, as a bar that wraps cannot be redrawn.
func cut(line string, limit int) string {
	if utf8.RuneCountInString(line) <= limit {
		return line
	}
	return string([]rune(line)[:limit-1]) + "…"
}
