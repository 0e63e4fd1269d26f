package report

import (
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Counted returns a number with its noun, such as "1 job" and "2 jobs".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// WorkOf returns jobs as the contract's pieces of work.
func WorkOf(jobs []Job, memberID string) []adapter.Work {
	list := []adapter.Work{}
	for _, one := range jobs {
		list = append(list, adapter.Work{
			Kind: "job", ID: one.JobID, Name: one.Name, MemberID: memberID, Owner: one.User, Since: one.since(),
			Message: strings.TrimSpace(strings.ToLower(one.State) + " " + one.NodeList),
		})
	}
	return list
}

// since returns when a job began, or was submitted if it has not begun. Slurm writes times without
// a zone: its commands run with TZ=UTC.
func (j Job) since() time.Time {
	for _, text := range []string{j.Started, j.Submitted} {
		if at, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
			return at
		}
	}
	return time.Time{}
}
