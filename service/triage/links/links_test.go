package links_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/service/triage/links"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestLinksAreMadeOfTheTemplatesThatAreSet(t *testing.T) {
	t.Parallel()
	templates := links.Templates{
		Trace: "https://grafana.example.com/explore?left=%7B%22id%22:%22{trace_id}%22%7D&from={from}&to={to}",
		Logs:  "http://127.0.0.1:3100/find/{correlation_id}",
	}
	require.NoError(t, templates.Check())
	require.NoError(t, links.Templates{}.Check())
	of := links.Values{TraceID: "abc", CorrelationID: "a/../b?x=1&y#z", From: noon, OperationID: "op_1"}
	require.Equal(t, []links.Link{
		{Name: "trace",
			URL: "https://grafana.example.com/explore?left=%7B%22id%22:%22abc%22%7D&from=1795607700000&to=now"},
		{Name: "logs", URL: "http://127.0.0.1:3100/find/a%2F..%2Fb%3Fx%3D1%26y%23z"},
	}, templates.Links(of))
	of.To = noon.Add(time.Hour)
	require.Contains(t, templates.Links(of)[0].URL, "&to=1795611900000")
	require.Empty(t, templates.Links(links.Values{}))
	board := links.Templates{Dashboard: "https://g.example.com/d/app?var-id={app_instance_id}"}
	require.Empty(t, board.Links(links.Values{CorrelationID: "x"}))
	require.Len(t, board.Links(of), 1)
}

func TestTemplatesThatCannotBeUsedAreRefusedByTheirFlag(t *testing.T) {
	t.Parallel()
	for template, why := range map[string]string{
		"http://grafana.example.com/{trace_id}":              "must be https",
		"javascript:alert({trace_id})":                       "names no host",
		"ftp://grafana.example.com/{trace_id}":               "must be https",
		"https://{trace_id}.example.com/":                    "host's name",
		"https://grafana.example.com:{trace_id}/":            "host's name",
		"https://user:word@grafana.example.com/":             "a user",
		"https://grafana.example.com/{secret}":               "{secret} is not a placeholder",
		"https://grafana.example.com/{trace_id":              "not an address",
		"/explore/{trace_id}":                                "names no host",
		"https://g.example.com/" + strings.Repeat("x", 2000): "at most 2000",
	} {
		err := links.Templates{Logs: template}.Check()
		require.ErrorContains(t, err, "--logs-url-template: ", template)
		require.ErrorContains(t, err, why, template)
	}
}
