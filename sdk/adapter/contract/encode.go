package contract

import (
	"encoding/json"
	"fmt"
	"time"
)

// EncodeTask returns the details of a task as JSON, for a [TaskSpec]. The kit sends tasks by it. Plain
// [json.Marshal] leaves out the durations, which have no field of their own on the wire.
func EncodeTask(task NodeTask) (json.RawMessage, error) {
	raw, err := json.Marshal(exact(task))
	if err != nil {
		return nil, fmt.Errorf("encode node task: %w", err)
	}
	return raw, nil
}

// exact returns what is encoded for a task: the task itself, or one whose durations hide its whole seconds. It is not
// done by a MarshalJSON: an adapter's own struct that embeds the task would inherit that in place of its own fields.
func exact(task NodeTask) any {
	switch task := task.(type) {
	case StartProcess:
		return task.exact()
	case *StartProcess:
		return task.exact()
	case Probe:
		return task.exact()
	case *Probe:
		return task.exact()
	}
	return task
}

func (s StartProcess) exact() any {
	if s.StopTimeout == 0 && s.Restart.Backoff == 0 {
		return s
	}
	type restart struct {
		Restart
		BackoffSeconds float64 `json:"backoffSeconds,omitempty"`
	}
	return struct {
		StartProcess
		Restart            restart `json:"restart"`
		StopTimeoutSeconds float64 `json:"stopTimeoutSeconds,omitempty"`
	}{
		StartProcess:       s,
		Restart:            restart{s.Restart, precise(s.Restart.Backoff, s.Restart.BackoffSeconds)},
		StopTimeoutSeconds: precise(s.StopTimeout, s.StopTimeoutSeconds),
	}
}

func (p Probe) exact() any {
	if p.Timeout == 0 {
		return p
	}
	return struct {
		Probe
		TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
	}{p, p.Timeout.Seconds()}
}

// precise returns the seconds of a duration, or the whole seconds where there is none.
func precise(duration time.Duration, whole int) float64 {
	if duration == 0 {
		return float64(whole)
	}
	return duration.Seconds()
}
