package server

import "github.com/prometheus/client_golang/prometheus"

// count publishes what the reconcilers find and mend, and what became of webhooks.
func (p *platform) count(registry *prometheus.Registry) {
	for _, reading := range p.found.Readings() {
		publish(registry, "app_platform_reconcile_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
	for _, reading := range p.sent.Readings() {
		publish(registry, "app_platform_webhook_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
}

func publish(registry *prometheus.Registry, name, help string, total bool, read func() int64) {
	value := func() float64 { return float64(read()) }
	if total {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}
