package metrics

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	poolNowDesc = prometheus.NewDesc(prefix+"pool_connections",
		"Connections to the database by pool: in use, idle, being opened.", []string{"pool", "state"}, nil)
	poolMaxDesc = prometheus.NewDesc(prefix+"pool_connections_max",
		"The most connections that a pool may have.", []string{"pool"}, nil)
	poolTakenDesc = prometheus.NewDesc(prefix+"pool_acquires_total",
		"Connections taken from a pool.", []string{"pool"}, nil)
	poolWaitsDesc = prometheus.NewDesc(prefix+"pool_waits_total",
		"Connections that had to be waited for, since none was idle.", []string{"pool"}, nil)
	poolWaitedDesc = prometheus.NewDesc(prefix+"pool_wait_seconds_total",
		"Time for which connections were waited for; its rate is how many wait on average.", []string{"pool"}, nil)
	poolGivenUpDesc = prometheus.NewDesc(prefix+"pool_waits_given_up_total",
		"Waits for a connection that were given up.", []string{"pool"}, nil)
)

// Pools publishes a process's pools of connections, by name.
type Pools map[string]*pgxpool.Pool

// Describe implements prometheus.Collector.
func (Pools) Describe(into chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{poolNowDesc, poolMaxDesc, poolTakenDesc, poolWaitsDesc, poolWaitedDesc,
		poolGivenUpDesc} {
		into <- desc
	}
}

// Collect implements prometheus.Collector.
func (p Pools) Collect(into chan<- prometheus.Metric) {
	for name, pool := range p {
		at := pool.Stat()
		for state, count := range map[string]int32{"in_use": at.AcquiredConns(), "idle": at.IdleConns(),
			"opening": at.ConstructingConns()} {
			into <- prometheus.MustNewConstMetric(poolNowDesc, prometheus.GaugeValue, float64(count), name, state)
		}
		into <- prometheus.MustNewConstMetric(poolMaxDesc, prometheus.GaugeValue, float64(at.MaxConns()), name)
		for desc, total := range map[*prometheus.Desc]float64{
			poolTakenDesc: float64(at.AcquireCount()), poolWaitsDesc: float64(at.EmptyAcquireCount()),
			poolWaitedDesc: at.EmptyAcquireWaitTime().Seconds(), poolGivenUpDesc: float64(at.CanceledAcquireCount()),
		} {
			into <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, total, name)
		}
	}
}
