package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// figure is one measured thing beside its reference.
type figure struct {
	name            string
	platform, other string // as they are shown; other is empty without a reference
	ratio           float64
	bar             string // as it is shown; empty for a figure without one
	met             bool
}

// sheet is every figure of a run.
type sheet struct{ figures []figure }

// atLeast notes a ratio that must reach a bar.
func (s *sheet) atLeast(name, platform, other string, ratio, bar float64) {
	s.figures = append(s.figures, figure{name, platform, other, ratio, fmt.Sprintf("≥ %.2f ×", bar), ratio >= bar})
}

// atMost notes a ratio that must not pass a bar.
func (s *sheet) atMost(name, platform, other string, ratio, bar float64) {
	s.figures = append(s.figures, figure{name, platform, other, ratio, fmt.Sprintf("≤ %.2f ×", bar), ratio <= bar})
}

// within notes a figure with a bar of its own.
func (s *sheet) within(name, platform, bar string, met bool) {
	s.figures = append(s.figures, figure{name: name, platform: platform, bar: bar, met: met})
}

// told notes a figure without a bar.
func (s *sheet) told(name, platform, other string, ratio float64) {
	s.figures = append(s.figures, figure{name: name, platform: platform, other: other, ratio: ratio, met: true})
}

func (s *sheet) missed() bool {
	return slices.ContainsFunc(s.figures, func(f figure) bool { return !f.met })
}

func (s *sheet) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tplatform\treference\tratio\tbar\t")
	for _, f := range s.figures {
		ratio, verdict := "", ""
		if f.ratio > 0 {
			ratio = fmt.Sprintf("%.2f", f.ratio)
		}
		if f.bar != "" {
			verdict = "met"
		}
		if !f.met {
			verdict = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", f.name, f.platform, f.other, ratio, f.bar, verdict)
	}
	_ = table.Flush()
}

// median of the values; zero of none.
func median[T float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// pairs are what two sides came to in rounds that took turns.
type pairs struct{ platform, other []float64 }

// ratio is the median of the rounds' ratios: what slows the machine for a while hits both of a pair.
func (p *pairs) ratio() float64 {
	var ratios []float64
	for i := range p.platform {
		ratios = append(ratios, p.platform[i]/p.other[i])
	}
	return median(ratios)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
