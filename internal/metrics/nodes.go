package metrics

import "github.com/prometheus/client_golang/prometheus"

// maxTaskKinds bounds the kinds of node task.
const maxTaskKinds = 16

// nodes counts what nodes' agents do here.
type nodes struct {
	agents prometheus.Gauge
	tasks  *prometheus.CounterVec
	kinds  label
}

func (n *nodes) begin(s *Set) {
	n.kinds.most = maxTaskKinds
	n.agents = s.gauge(1, "agents_connected",
		"Nodes' agents that follow their tasks in this process now.").WithLabelValues()
	n.tasks = s.counter(maxTaskKinds*4, "node_tasks_ended_total",
		"Node tasks whose end their agents reported here, by kind and state.", "kind", "state")
}

// AgentConnected counts an agent that follows its tasks, until the returned function is called.
func (s *Set) AgentConnected() (left func()) {
	if s == nil {
		return func() {}
	}
	s.nodes.agents.Inc()
	return s.nodes.agents.Dec
}

// TaskEnded counts a node task whose end its agent reported.
func (s *Set) TaskEnded(kind, state string) {
	if s != nil {
		s.nodes.tasks.WithLabelValues(s.nodes.kinds.of(kind), state).Inc()
	}
}
