package kit

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// figure is one measured thing beside its reference.
type figure struct {
	Name            string
	platform, Other string // as they are shown; other is empty without a reference
	Ratio           float64
	Bar             string // as it is shown; empty for a figure without one
	met             bool
}

// Sheet is every figure of a run.
type Sheet struct{ Figures []figure }

// AtLeast notes a ratio that must reach a bar.
func (s *Sheet) AtLeast(name, platform, other string, ratio, bar float64) {
	s.Figures = append(s.Figures, figure{name, platform, other, ratio, fmt.Sprintf("≥ %.2f ×", bar), ratio >= bar})
}

// AtMost notes a ratio that must not pass a bar.
func (s *Sheet) AtMost(name, platform, other string, ratio, bar float64) {
	s.Figures = append(s.Figures, figure{name, platform, other, ratio, fmt.Sprintf("≤ %.2f ×", bar), ratio <= bar})
}

// Within notes a figure with a bar of its own.
func (s *Sheet) Within(name, platform, bar string, met bool) {
	s.Figures = append(s.Figures, figure{Name: name, platform: platform, Bar: bar, met: met})
}

// Bounded notes a figure beside its reference's whose bar is its own: what it may be at most, written by text.
func (s *Sheet) Bounded(name string, pairs *Pairs, text func(float64) string, most float64) {
	platform := Median(pairs.Platform)
	s.Figures = append(s.Figures, figure{name, text(platform), text(Median(pairs.Other)), pairs.Ratio(),
		"≤ " + text(most), platform <= most})
}

// Told notes a figure without a bar.
func (s *Sheet) Told(name, platform, other string, ratio float64) {
	s.Figures = append(s.Figures, figure{Name: name, platform: platform, Other: other, Ratio: ratio, met: true})
}

// Missed reports whether a figure missed its bar.
func (s *Sheet) Missed() bool {
	return slices.ContainsFunc(s.Figures, func(f figure) bool { return !f.met })
}

// Print writes the figures, each beside its reference, as a table.
func (s *Sheet) Print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tplatform\treference\tratio\tbar\t")
	for _, f := range s.Figures {
		ratio, verdict := "", ""
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
		}
		if f.Bar != "" {
			verdict = "met"
		}
		if !f.met {
			verdict = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.platform, f.Other, ratio, f.Bar, verdict)
	}
	_ = table.Flush()
}

// Median of the values; zero of none.
func Median[T float64 | time.Duration](values []T) T {
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

// Pairs are what two sides came to in rounds that took turns.
type Pairs struct{ Platform, Other []float64 }

// Ratio is the median of the rounds' ratios: what slows the machine for a while hits both of a pair.
func (p *Pairs) Ratio() float64 {
	var ratios []float64
	for i := range p.Platform {
		ratios = append(ratios, p.Platform[i]/p.Other[i])
	}
	return Median(ratios)
}

// Millis writes a duration in milliseconds.
func Millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
