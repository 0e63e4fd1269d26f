package agent_test

import "github.com/gpuaas/app-platform/sdk/client/generated/gql"

// give makes a task and sends it.
func (s *standin) give(task gql.NodeWork) {
	s.mu.Lock()
	if _, known := s.tasks[task.Id]; !known {
		s.order = append(s.order, task.Id)
	}
	task.CorrelationId = "cor-of-" + task.Id
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
