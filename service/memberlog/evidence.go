package memberlog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// last hands on the last lines of a member that was torn down, as a node would.
func last(evidence []byte, query nodelogs.Query, names func([]string) error, each func(nodelogs.Line) error) error {
	var kept []nodelogs.Last
	if err := json.Unmarshal(evidence, &kept); err != nil {
		return fmt.Errorf("read the last lines of member %s: %w", query.Member, err)
	}
	processes, lines := []string{}, []nodelogs.Line{}
	for _, one := range kept {
		processes = append(processes, one.Process)
		if query.Process == "" || query.Process == one.Process {
			lines = append(lines, wanted(one, query)...)
		}
	}
	if query.Process != "" && !slices.Contains(processes, query.Process) {
		return fault.New(fault.InvalidArgument, "the member has started no process by this name: see processes").
			At("process")
	}
	slices.SortStableFunc(lines, func(a, b nodelogs.Line) int { return a.Time.Compare(b.Time) })
	if err := names(processes); err != nil {
		return err
	}
	if query.Tail > 0 {
		from := max(0, len(lines)-query.Tail)
		for _, left := range lines[:from] {
			if err := each(nodelogs.Line{Process: left.Process, Number: left.Number, Mark: true}); err != nil {
				return err
			}
		}
		lines = lines[from:]
	}
	for _, line := range lines[:min(len(lines), MaxPage)] {
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// wanted returns the lines of a process that a query selects, after a gap where lines before them are missing.
func wanted(of nodelogs.Last, query nodelogs.Query) (lines []nodelogs.Line) {
	after, read := query.After[of.Process]
	for _, line := range of.Lines {
		line.Process = of.Process
		line.Text = nodelogs.Plain([]byte(line.Text)) // a node wrote it
		if line.Number <= after || line.Gap == nil && line.Time.Before(query.Since) {
			continue
		}
		if first := line.First(); len(lines) == 0 && first > after+1 && (read || query.Tail == 0) {
			gap := &nodelogs.Gap{From: after + 1, To: first - 1}
			lines = append(lines, nodelogs.Line{Process: of.Process, Number: gap.To, Gap: gap, Time: line.Time})
		}
		lines = append(lines, line)
	}
	return lines
}
