package chaos

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// maxExplained bounds the operations that are explained.
const maxExplained = 5

var operationID = regexp.MustCompile(`op_[0-9a-z]{26}`)

// stories are what the tables know of an operation, each row as JSON.
var stories = []string{
	`SELECT 'operation ' || (to_jsonb(o) - 'adapter_status' - 'desired_change')::text FROM operation o WHERE id = $1`,
	`SELECT 'adapter said ' || adapter_status::text FROM operation WHERE id = $1 AND adapter_status IS NOT NULL`,
	`SELECT 'step ' || (to_jsonb(s) - 'tenant_id' - 'project_id')::text FROM operation_step s WHERE operation_id = $1
		ORDER BY ordinal`,
	`SELECT 'task ' || (to_jsonb(t) - 'tenant_id' - 'project_id' - 'spec_digest')::text FROM node_task t
		WHERE operation_id = $1 ORDER BY created_at LIMIT 20`,
	`SELECT 'event ' || seq || ' ' || occurred_at || ' ' || type || ' ' || message FROM app_instance_event
		WHERE operation_id = $1 ORDER BY seq LIMIT 50`,
}

// explain prints what the tables know of the operations that are named in findings.
func (s *Suite) explain(ctx context.Context, on querier, findings []string) error {
	told := make(map[string]bool)
	for _, id := range operationID.FindAllString(strings.Join(findings, " "), -1) {
		if told[id] || len(told) == maxExplained {
			continue
		}
		told[id] = true
		s.say("---- %s", id)
		for _, sql := range stories {
			lines, err := list(ctx, on, sql, id)
			if err != nil {
				return fmt.Errorf("explain %s: %w", id, err)
			}
			for _, line := range lines {
				s.say("%s", line)
			}
		}
	}
	return nil
}
