package server

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/workers/gauges"
)

var update = flag.Bool("update", false, "rewrite the table of metrics")

// described are a collector's metrics, each with its help.
func described(one prometheus.Collector) map[string]string {
	descs, found := make(chan *prometheus.Desc, 256), map[string]string{}
	one.Describe(descs)
	close(descs)
	for desc := range descs {
		match := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)"`).FindStringSubmatch(desc.String())
		found[match[1]] = match[2]
	}
	return found
}

// documents checks that docs/operations.md lists every metric that a process exposes, as it exposes it, and no other.
func documents(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	const page, begin, end = "../docs/operations.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	database, rows := described(&gauges.Reader{}), []string{}
	for name, family := range families {
		if !strings.HasPrefix(name, "app_platform_") || rare[name] != nil {
			continue
		}
		var names []string
		for _, one := range family.GetMetric() {
			for _, pair := range one.GetLabel() {
				names = append(names, "`"+pair.GetName()+"`")
			}
		}
		slices.Sort(names)
		of := "process"
		if _, is := database[name]; is && !strings.HasPrefix(name, "app_platform_database_read") {
			of = "database"
		} else if strings.HasPrefix(name, "app_platform_reconcile_") && family.GetType() == dto.MetricType_GAUGE {
			of = "reconciler"
		}
		rows = append(rows, row(name, strings.ToLower(family.GetType().String()), slices.Compact(names),
			of, family.GetHelp()))
	}
	for _, each := range []prometheus.Collector{metrics.New(nil), feedHolder{},
		edge.NewLimits(edge.Config{}).Collector()} {
		for name, help := range described(each) {
			if labels := rare[name]; labels != nil {
				kind, of := "gauge", "process"
				if strings.HasSuffix(name, "_total") {
					kind = "counter"
				} else if strings.HasPrefix(name, "app_platform_feed_") {
					of = "reconciler"
				}
				rows = append(rows, row(name, kind, strings.Split("`"+strings.Join(labels, "` `")+"`", " "), of, help))
			}
		}
	}
	slices.Sort(rows)
	table := "| metric | type | labels | of | |\n|---|---|---|---|---|\n" + strings.Join(rows, "")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, page)
	was, after, found := strings.Cut(rest, end)
	require.True(t, found, page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table+end+after), 0o600))
		return
	}
	require.Equal(t, table, was, "go test ./server -run TestWhatAProcessDoesIsAMetric -update writes it")
}

func row(name, kind string, labels []string, of, help string) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, kind, strings.Join(labels, " "), of, help)
}
