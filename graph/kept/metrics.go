package kept

import "github.com/prometheus/client_golang/prometheus"

var (
	shownDesc = prometheus.NewDesc("app_platform_answers_shown_total",
		"Kept answers that were returned again, since nothing that they depend on had changed.", nil, nil)
	readDesc = prometheus.NewDesc("app_platform_answers_read_total",
		"Answers that could be kept and were read from the database.", nil, nil)
	keptDesc = prometheus.NewDesc("app_platform_answers_kept", "Answers that are kept now.", nil, nil)
	sizeDesc = prometheus.NewDesc("app_platform_answers_kept_bytes", "Memory that the kept answers take.", nil, nil)
)

// Describe implements prometheus.Collector.
func (a *Answers) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{shownDesc, readDesc, keptDesc, sizeDesc} {
		into <- desc
	}
}

// Collect implements prometheus.Collector.
func (a *Answers) Collect(into chan<- prometheus.Metric) {
	answers, bytes := a.Size()
	into <- prometheus.MustNewConstMetric(shownDesc, prometheus.CounterValue, float64(a.Shown()))
	into <- prometheus.MustNewConstMetric(readDesc, prometheus.CounterValue, float64(a.Fresh()))
	into <- prometheus.MustNewConstMetric(keptDesc, prometheus.GaugeValue, float64(answers))
	into <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(bytes))
}
