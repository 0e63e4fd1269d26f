package walker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gpuaas/app-platform/sdk/runbook"
)

const (
	// recent is how old a line of a log may be.
	recent = 5 * time.Minute
	// longest bounds a line of a log, and most how many are kept of one program.
	longest, most = 1 << 20, 200
)

// gauges are the metrics that are facts.
var gauges = map[string]string{
	"app_platform_reconcile_feed_lag_seconds": "metric.feed_lag",
}

// metrics scrapes every process.
func (w *Walker) metrics(ctx context.Context, _ *Subject, into runbook.Facts) error {
	if w.Metrics == nil {
		return nil
	}
	for _, address := range w.Metrics() {
		if err := scrape(ctx, address, into); err != nil {
			return err
		}
	}
	return nil
}

func scrape(ctx context.Context, address string, into runbook.Facts) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("metrics of %s: %s", address, answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return err
	}
	for name, fact := range gauges {
		for _, one := range families[name].GetMetric() {
			into.Add(fact, number(one.GetGauge().GetValue()))
		}
	}
	for _, one := range families["app_platform_feed_holder_seconds"].GetMetric() {
		for _, label := range one.GetLabel() {
			if label.GetName() == "kind" {
				into.Add("metric.feed_holder", label.GetValue())
			}
		}
	}
	return nil
}

// logs reads the warnings and errors of servers and agents.
func (w *Walker) logs(_ context.Context, _ *Subject, into runbook.Facts) error {
	for fact, files := range map[string]func() []string{"server.log": w.ServerLogs, "agent.log": w.AgentLogs} {
		if files == nil {
			continue
		}
		for _, file := range files() {
			lines, err := w.warnings(file)
			if err != nil {
				return err
			}
			into.Add(fact, lines...)
		}
	}
	return nil
}

// warnings returns a log's WARN and ERROR lines, and those that are not JSON, which a program writes as it dies.
func (w *Walker) warnings(path string) (found []string, err error) {
	file, err := os.Open(path) // #nosec G304 -- a log of this installation
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	written, err := file.Stat()
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var line struct {
			Time       time.Time
			Level, Msg string
			Error      string
		}
		text := lines.Text()
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			if line.Level == "INFO" || line.Level == "DEBUG" || time.Since(line.Time) > recent ||
				line.Time.Before(w.Since) {
				continue
			}
			text = strings.TrimSpace(line.Msg + " " + line.Error)
		} else if written.ModTime().Before(w.Since) {
			continue // it has no time of its own: a program says it as it dies
		}
		if found = append(found, text); len(found) > most {
			found = found[1:]
		}
	}
	return found, lines.Err()
}
