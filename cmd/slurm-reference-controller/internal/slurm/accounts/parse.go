package accounts

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The dimensions of a cluster's usage.
const (
	jobs           = "jobs"             // runs of jobs that have ended
	jobSeconds     = "job.seconds"      // how long they ran
	jobNodeSeconds = "job.node_seconds" // on how many nodes: shown, since the platform meters the nodes
)

// fields are the sacct fields that parse reads. The end comes first, to sort by.
const fields = "End,Start,JobIDRaw,AllocNodes,ElapsedRaw,DBIndex"

// sacctTime is how sacct writes a time.
const sacctTime = "2006-01-02T15:04:05"

// parse reads runs of jobs that have ended, a line each, and returns their usage and how many lines there were. A line
// that cannot be read stops no other.
func parse(text string) (records []adapter.UsageRecord, lines int) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		lines++
		if one, ok := parseRun(line); ok {
			records = append(records, one.usage()...)
		}
	}
	return records, lines
}

// run is one run of a job on all its nodes.
type run struct {
	job            string
	start, end     time.Time
	nodes, elapsed int    // seconds, without those in which it was suspended
	number         string // slurmdbd's own of the run
}

// parseRun reads a line. A job that was canceled before it began had no nodes, and is not a run.
func parseRun(line string) (one run, ok bool) {
	part := strings.Split(line, "|")
	if len(part) != 6 || part[2] == "" || part[5] == "" {
		return one, false
	}
	var wrong [4]error
	one.job, one.number = part[2], part[5]
	one.end, wrong[0] = time.Parse(sacctTime, part[0])
	one.start, wrong[1] = time.Parse(sacctTime, part[1])
	one.nodes, wrong[2] = strconv.Atoi(part[3])
	one.elapsed, wrong[3] = strconv.Atoi(part[4])
	return one, errors.Join(wrong[:]...) == nil && !one.end.Before(one.start) && one.nodes > 0 && one.elapsed >= 0
}

// usage is what a run has used. An id has the job's number, when the run began, and slurmdbd's number of the run: a
// task of an array has a job number of its own, and a job that is queued again may begin again within the same second.
func (r run) usage() []adapter.UsageRecord {
	one := func(dimension string, quantity int) adapter.UsageRecord {
		return adapter.UsageRecord{ID: strings.Join([]string{dimension, r.job, strconv.FormatInt(r.start.Unix(), 10),
			r.number}, "/"),
			Dimension: dimension, Quantity: strconv.Itoa(quantity), From: r.start, To: r.end, Session: "job-" + r.job}
	}
	return []adapter.UsageRecord{one(jobs, 1), one(jobSeconds, r.elapsed), one(jobNodeSeconds, r.elapsed*r.nodes)}
}
