package blocker

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// taskRow is a node task as it was read.
type taskRow struct {
	blocker.Task
	operation ids.ID
}

// ownPrefix begins the idempotency keys of the platform's own tasks; those of a probe end with its name.
const (
	ownPrefix  = "platform "
	probeParts = 6 // platform, probe, operation, attempt, round, name
)

const taskColumns = `k.id, coalesce(k.operation_id, ''), k.member_id, k.kind, k.state, k.idempotency_key, k.created_at, k.started_at, k.ended_at,
	k.timeout_seconds, k.message, k.result, k.exit_code, k.node_id, coalesce(n.name, k.node_id), coalesce(n.status, 'ONLINE'),
	coalesce(n.last_seen_at, n.created_at, now())`

const openTasksSQL = `SELECT k.instance_id, ` + taskColumns + ` FROM node_task k LEFT JOIN compute_node n ON n.id
	= k.node_id
	WHERE k.ended_at IS NULL AND k.instance_id IN ({instances})
		AND k.node_id IN (SELECT m.node_id FROM member m WHERE m.instance_id IN ({instances}))
	ORDER BY k.id LIMIT ` + maxOpenTasks

const endedTasksSQL = `SELECT o.id, ` + taskColumns + ` FROM operation o CROSS JOIN LATERAL (SELECT * FROM node_task t
		WHERE t.operation_id = o.id AND t.ended_at IS NOT NULL ORDER BY t.id DESC LIMIT ` + maxEndedTasks + `) k
	LEFT JOIN compute_node n ON n.id = k.node_id WHERE o.id IN ({operations}) ORDER BY k.id DESC`

func (r *reading) addOpenTask(rows pgx.Rows) error { return addTask(rows, r.open) }

func (r *reading) addEndedTask(rows pgx.Rows) error { return addTask(rows, r.ended) }

// addTask scans a task and files it under the first column.
func addTask(rows pgx.Rows, under map[ids.ID][]taskRow) error {
	var of ids.ID
	var t taskRow
	var key, message string
	var started, ended *time.Time
	var seconds int
	var result []byte
	var exit *int
	err := rows.Scan(&of, &t.ID, &t.operation, &t.MemberID, &t.Kind, &t.State, &key, &t.Created, &started, &ended,
		&seconds, &message, &result, &exit, &t.Node.ID, &t.Node.Name, &t.Node.Status, &t.Node.Seen)
	if err != nil {
		return err
	}
	t.Timeout, t.Platform = time.Duration(seconds)*time.Second, strings.HasPrefix(key, ownPrefix)
	if started != nil {
		t.Started = *started
	}
	if ended != nil {
		t.Ended = *ended
	}
	if parts := strings.SplitN(key, " ", probeParts); t.Platform && t.Kind == lifecycle.TaskProbe &&
		len(parts) == probeParts {
		t.Name = parts[probeParts-1]
	}
	t.judge(result, message, exit)
	under[of] = append(under[of], t)
	return nil
}

// judge reads what the task found.
func (t *taskRow) judge(raw []byte, message string, exit *int) {
	var result struct {
		OK      bool       `json:"ok"`
		Detail  string     `json:"detail"`
		Code    fault.Code `json:"code"`
		Residue *struct {
			Sandbox   bool              `json:"sandbox"`
			Processes []json.RawMessage `json:"processes"`
			Mounts    []string          `json:"mounts"`
			Files     int               `json:"files"`
			Cgroups   []string          `json:"cgroups"`
			Network   []string          `json:"network"`
		} `json:"residue"`
	}
	readable := len(raw) > 0 && json.Unmarshal(raw, &result) == nil
	t.Good, t.Code = t.State == lifecycle.TaskSucceeded, result.Code
	if t.Platform { // what an adapter's task said is for those who may read tasks
		t.Detail = message
	}
	switch {
	case !t.Platform:
	case t.Kind == lifecycle.TaskProbe && readable:
		t.Good = t.Good && result.OK
		if result.Detail != "" {
			t.Detail = result.Detail
		}
	case t.Kind == lifecycle.TaskResidue && readable && result.Residue != nil:
		left := result.Residue
		t.Good = t.Good && !left.Sandbox && len(left.Processes)+len(left.Mounts)+left.Files+len(left.Cgroups)+
			len(left.Network) == 0
		if t.State == lifecycle.TaskSucceeded {
			t.Detail = fmt.Sprintf("%d processes, %d mounts, %d files", len(left.Processes), len(left.Mounts),
				left.Files)
		}
	case t.Kind == lifecycle.TaskProbe || t.Kind == lifecycle.TaskResidue:
		t.Good = false
	}
	if t.Detail == "" && exit != nil {
		t.Detail = fmt.Sprintf("it ended with exit code %d", *exit)
	}
	if t.Detail == "" {
		t.Detail = "it is " + strings.ToLower(string(t.State))
	}
}
