package agent_test

import "github.com/gpuaas/app-platform/sdk/client/generated/gql"

// contextOfA are the fields of a line about the task tsk_a that say whose it is and what it is about.
const contextOfA = `"correlation_id":"cor-of-tsk_a","org_id":"ten_1","project_id":"prj_1","app_slug":"hello",` +
	`"app_instance_id":"` + instance + `","operation_id":"op_1","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`

// give makes a task and sends it.
func (s *standin) give(task gql.NodeWork) {
	s.mu.Lock()
	if _, known := s.tasks[task.Id]; !known {
		s.order = append(s.order, task.Id)
	}
	task.CorrelationId = "cor-of-" + task.Id
	task.TenantId, task.ProjectId, task.AppSlug = "ten_1", "prj_1", "hello"
	task.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	task.State = gql.NodeTaskStatePending
	s.tasks[task.Id] = &standTask{NodeWork: task, State: string(task.State), output: map[string]string{}}
	s.mu.Unlock()
	s.push(task)
}

// seen is a copy of a task as it is now.
func (s *standin) seen(id string) standTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *s.tasks[id]
	copied.output = map[string]string{"STDOUT": copied.output["STDOUT"], "STDERR": copied.output["STDERR"]}
	return copied
}

// count reads one of the counters.
func (s *standin) count(counter *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *counter
}
