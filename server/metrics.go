package server

import "github.com/prometheus/client_golang/prometheus"

// count publishes what the reconcilers find and mend, what became of webhooks, and what was delivered to nodes.
func (p *platform) count(registry *prometheus.Registry) {
	for _, reading := range p.found.Readings() {
		publish(registry, "app_platform_reconcile_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
	for _, reading := range p.sent.Readings() {
		publish(registry, "app_platform_webhook_"+reading.Name, reading.Help, reading.Total, reading.Value)
	}
	publish(registry, "app_platform_delivery_bytes_total", "Bytes of artifacts delivered to nodes.", true,
		p.delivered.Bytes.Load)
	publish(registry, "app_platform_delivery_parts_total", "Parts of artifacts delivered to nodes to their end.", true,
		p.delivered.Parts.Load)
	publish(registry, "app_platform_delivery_broken_total", "Deliveries that broke off, by the source or the node.", true,
		p.delivered.Broken.Load)
	publish(registry, "app_platform_delivery_under_way", "Parts of artifacts that are being delivered now.", false,
		p.delivered.UnderWay.Load)
}

func publish(registry *prometheus.Registry, name, help string, total bool, read func() int64) {
	value := func() float64 { return float64(read()) }
	if total {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}
