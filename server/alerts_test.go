package server

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// observability is where alerts and dashboards are.
const observability = "../deploy/observability"

// alert is one rule of the file.
type alert struct {
	Alert, Expr string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// alerts reads the rules. A field that Prometheus does not know is an error.
func alerts(t *testing.T) (list []alert) {
	t.Helper()
	file, err := os.Open(filepath.Join(observability, "alerts.yaml"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&rules))
	for _, group := range rules.Groups {
		list = append(list, group.Rules...)
	}
	require.Greater(t, len(list), 20)
	return list
}

// sample is a made-up series: a value now, and by how much it grows each minute.
type sample struct {
	labels labels.Labels
	value  float64
	grows  float64
}

// made reads series in Prometheus's notation.
func made(t *testing.T, series map[string][2]float64) (list []sample) {
	t.Helper()
	for text, value := range series {
		found, err := parser.ParseMetric(text)
		require.NoError(t, err, text)
		list = append(list, sample{found, value[0], value[1]})
	}
	return list
}

// selected is what a query selects: a storage.SeriesSet without errors.
type selected struct {
	series []storage.Series
	at     int
}

// Next implements storage.SeriesSet.
func (s *selected) Next() bool { s.at++; return s.at <= len(s.series) }

// At implements storage.SeriesSet.
func (s *selected) At() storage.Series { return s.series[s.at-1] }

// Err implements storage.SeriesSet.
func (*selected) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*selected) Warnings() annotations.Annotations { return nil }

// queryable answers from made-up series, with a sample every 30 seconds from begin to end.
func queryable(series []sample, begin, end time.Time) storage.Queryable {
	return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints,
			matchers ...*labels.Matcher) storage.SeriesSet {
			found := &selected{}
			for _, one := range series {
				matches := func(m *labels.Matcher) bool { return m.Matches(one.labels.Get(m.Name)) }
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !matches(m) }) {
					found.series = append(found.series, one.between(begin, end))
				}
			}
			return found
		}}, nil
	})
}

// point is one sample.
type point struct {
	chunks.Sample
	at int64
	v  float64
}

// Type, T, F and Copy implement chunks.Sample for a number; what is of histograms is never called.
func (p point) Type() chunkenc.ValueType { return chunkenc.ValFloat }
func (p point) T() int64                 { return p.at }
func (p point) F() float64               { return p.v }
func (p point) Copy() chunks.Sample      { return p }

func (s *sample) between(begin, end time.Time) storage.Series {
	var points []chunks.Sample
	for at := begin; !at.After(end); at = at.Add(30 * time.Second) {
		points = append(points, point{at: at.UnixMilli(), v: s.value + s.grows*at.Sub(begin).Minutes()})
	}
	return storage.NewListSeries(s.labels, points)
}

// fires reports whether a rule fires on series that have been so for two hours, and with which labels.
func (a *alert) fires(t *testing.T, engine *promql.Engine, series []sample) (with labels.Labels, yes bool) {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := begin.Add(2 * time.Hour)
	var pending time.Duration
	if a.For != "" {
		var err error
		pending, err = time.ParseDuration(a.For)
		require.NoError(t, err, a.Alert)
	}
	query, err := engine.NewRangeQuery(t.Context(), queryable(series, begin, end), nil, a.Expr, end.Add(-pending), end,
		30*time.Second)
	require.NoError(t, err, a.Alert)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, a.Alert)
	matrix, err := result.Matrix()
	require.NoError(t, err, a.Alert)
	for _, one := range matrix {
		if len(one.Floats) == int(pending/(30*time.Second))+1 {
			return one.Metric, true
		}
	}
	return labels.EmptyLabels(), false
}

// TestEachAlertFiresOnWhatItIsForAndOnNothingHealthy evaluates every rule by Prometheus's own engine.
func TestEachAlertFiresOnWhatItIsForAndOnNothingHealthy(t *testing.T) {
	t.Parallel()
	engine := promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: 1_000_000,
		Timeout: patience, LookbackDelta: 5 * time.Minute})
	defer func() { _ = engine.Close() }()
	list := alerts(t)
	named := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, one := range list {
		_, fired := one.fires(t, engine, made(t, healthy))
		require.False(t, fired, "%s fires though all is well", one.Alert)
		require.NotEmpty(t, ill[one.Alert], "%s has no made-up series: add some to ill", one.Alert)
		world := map[string][2]float64{}
		for series, value := range healthy {
			world[series] = value
		}
		for series, value := range ill[one.Alert] {
			world[series] = value
			if value == gone {
				delete(world, series)
			}
		}
		with, fired := one.fires(t, engine, made(t, world))
		require.True(t, fired, "%s does not fire", one.Alert)
		for _, label := range named.FindAllStringSubmatch(one.Annotations["description"], -1) {
			require.True(t, with.Has(label[1]), "%s names a label that it does not have: %s", one.Alert, label[1])
		}
	}
	require.Len(t, ill, len(list), "every entry of ill is of a rule")
}

// TestEachAlertSaysWhatToDo: each has a severity, says what is wrong, and leads to a section of a runbook.
func TestEachAlertSaysWhatToDo(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, one := range alerts(t) {
		require.False(t, seen[one.Alert], one.Alert)
		seen[one.Alert] = true
		require.Contains(t, []string{"warning", "critical"}, one.Labels["severity"], one.Alert)
		require.NotEmpty(t, one.Annotations["summary"], one.Alert)
		require.NotEmpty(t, one.Annotations["description"], one.Alert)
		file, section, _ := strings.Cut(one.Annotations["runbook"], "#")
		require.True(t, strings.HasPrefix(file, "docs/runbooks/"), one.Alert)
		page, err := os.ReadFile(filepath.Join("..", file))
		require.NoError(t, err, one.Alert)
		require.Contains(t, sections(string(page)), section, "%s: %s has no such section", one.Alert, file)
	}
}

// sections are the anchors of a page, as GitHub makes them of headings.
func sections(page string) (anchors []string) {
	for line := range strings.Lines(page) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			heading = strings.ToLower(strings.TrimSpace(heading))
			heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, "")
			anchors = append(anchors, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return anchors
}

// dashboard is as much of Grafana's model as the tests look at.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name string }
	}
}

// expressions are all that alerts and dashboards ask Prometheus, by where they are; variables of Grafana are replaced.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, one := range alerts(t) {
		found["alert "+one.Alert] = one.Expr
	}
	files, err := filepath.Glob(filepath.Join(observability, "dashboards", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var board dashboard
		require.NoError(t, json.Unmarshal(text, &board), file)
		require.NotEmpty(t, board.Panels, file)
		require.Equal(t, "app-platform-"+strings.TrimSuffix(filepath.Base(file), ".json"), board.UID)
		for _, panel := range board.Panels {
			require.NotEmpty(t, panel.Targets, "%s: %s", file, panel.Title)
			for _, target := range panel.Targets {
				found[board.UID+": "+panel.Title+": "+target.LegendFormat] = strings.NewReplacer("$__rate_interval",
					"5m", "$instance", ".*").Replace(target.Expr)
			}
		}
	}
	return found
}

// uses returns the metrics of an expression, each with the labels that it matches, and all labels that it groups by.
func uses(t *testing.T, where, text string) map[string][]string {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	require.NoError(t, err, where)
	found := map[string][]string{}
	var grouping []string
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			found[node.Name] = append(found[node.Name], "")
			for _, matcher := range node.LabelMatchers {
				if matcher.Name != labels.MetricName {
					found[node.Name] = append(found[node.Name], matcher.Name)
				}
			}
		case *parser.AggregateExpr:
			grouping = append(grouping, node.Grouping...)
		}
		return nil
	})
	for name := range found {
		found[name] = append(found[name], grouping...)
	}
	require.NotEmpty(t, found, where)
	return found
}
