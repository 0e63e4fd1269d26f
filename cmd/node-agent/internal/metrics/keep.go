package metrics

import (
	"os"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

// maxFiles bounds the series that a node keeps. Beyond it those go that were written to longest ago: of members that
// were removed.
const maxFiles = 2_000

// dropOld deletes the series that have no point any more, and those beyond maxFiles.
func (r *Recorder) dropOld() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	type series struct {
		name    string
		written time.Time
	}
	var all []series
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			all = append(all, series{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b series) int { return a.written.Compare(b.written) })
	oldest := r.options.Now().Add(-nodemetrics.CoarseSpan * time.Second)
	for i, one := range all {
		if i < len(all)-maxFiles || one.written.Before(oldest) {
			_ = os.Remove(r.file(one.name))
		}
	}
}
