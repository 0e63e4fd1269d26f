package server

import "github.com/prometheus/client_golang/prometheus"

// count publishes what the reconcilers find and mend.
func (p *platform) count(registry *prometheus.Registry) {
	for _, reading := range p.found.Readings() {
		name, value := "app_platform_reconcile_"+reading.Name, func() float64 { return float64(reading.Value()) }
		if reading.Total {
			registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: reading.Help}, value))
			continue
		}
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: reading.Help}, value))
	}
}
