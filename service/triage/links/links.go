// Package links makes the addresses of an installation's own tools from templates that its operator has named: the page
// of a trace, of the lines of all logs, and of a dashboard.
//
// A template is an address with placeholders, such as https://grafana.example.com/explore?traceId={trace_id}. Values
// are escaped, so that none can lead to another page, and the name of the host cannot contain a placeholder.
package links

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxTemplate bounds a template in bytes; browsers take addresses of about this length.
const maxTemplate = 2000

// placeholders are those that a template may have.
var placeholders = []string{"trace_id", "correlation_id", "operation_id", "app_instance_id", "project_id", "from", "to"}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// Templates are those of an installation; an empty one makes no link.
type Templates struct {
	// Trace leads to a trace, Logs to lines with a correlation id, Dashboard to an instance's or operation's numbers.
	Trace, Logs, Dashboard string
}

// Link is a page of one of the installation's tools.
type Link struct {
	// Name is trace, logs or dashboard.
	Name string
	// URL is the page's address.
	URL string
}

// Values fill the placeholders; empty ones are filled with nothing.
type Values struct {
	TraceID, CorrelationID, OperationID, InstanceID, ProjectID string
	// From and To are when it was requested and when it ended; To is zero while it has not, which is written as now.
	From, To time.Time
}

// around is how much earlier and later than the request and its end a page begins and ends.
const around = 5 * time.Minute

// Check reports which template cannot be used, by its flag: an address must be https, or http to this machine alone,
// without a user, and have known placeholders outside of the host's name.
func (t Templates) Check() error {
	for _, one := range []struct{ flag, template string }{
		{"--trace-url-template", t.Trace}, {"--logs-url-template", t.Logs}, {"--dashboard-url-template", t.Dashboard},
	} {
		if one.template == "" {
			continue
		}
		if err := check(one.template); err != nil {
			return fmt.Errorf("%s: %w", one.flag, err)
		}
	}
	return nil
}

func check(template string) error {
	if len(template) > maxTemplate {
		return fmt.Errorf("the template has %d bytes: at most %d", len(template), maxTemplate)
	}
	for _, found := range placeholder.FindAllStringSubmatch(template, -1) {
		if !slices.Contains(placeholders, found[1]) {
			return fmt.Errorf("{%s} is not a placeholder: use {%s}, and write any other brace as %%7B or %%7D",
				found[1], strings.Join(placeholders, "}, {"))
		}
	}
	address, err := url.Parse(placeholder.ReplaceAllString(template, "0"))
	if err != nil || strings.ContainsAny(placeholder.ReplaceAllString(template, ""), "{}") {
		return fmt.Errorf("%q is not an address: write one such as https://grafana.example.com/explore?id={trace_id}",
			template)
	}
	plain, err := url.Parse(placeholder.ReplaceAllString(template, "1"))
	switch {
	case err != nil || address.Host != plain.Host || address.Scheme != plain.Scheme:
		return fmt.Errorf("a placeholder cannot be in the host's name")
	case address.User != nil:
		return fmt.Errorf("the address has a user: leave it out, as the tool has its own login")
	case address.Host == "":
		return fmt.Errorf("the address names no host")
	case address.Scheme == "https", address.Scheme == "http" && loopback(address.Hostname()):
		return nil
	}
	return fmt.Errorf("the address must be https, or http to this machine")
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Links returns the links of the templates that are set. It leaves out those whose page would be about nothing: a trace
// without an id, logs without a correlation id, a dashboard with neither an instance nor an operation.
func (t Templates) Links(of Values) []Link {
	all := []Link{}
	add := func(name, template string, about bool) {
		if template != "" && about {
			all = append(all, Link{Name: name, URL: of.fill(template)})
		}
	}
	add("trace", t.Trace, of.TraceID != "")
	add("logs", t.Logs, of.CorrelationID != "")
	add("dashboard", t.Dashboard, of.InstanceID != "" || of.OperationID != "")
	return all
}

// fill writes the values into a template, each escaped.
func (v Values) fill(template string) string {
	to := "now"
	if !v.To.IsZero() {
		to = millis(v.To.Add(around))
	}
	values := map[string]string{"trace_id": v.TraceID, "correlation_id": v.CorrelationID, "operation_id": v.OperationID,
		"app_instance_id": v.InstanceID, "project_id": v.ProjectID, "from": millis(v.From.Add(-around)), "to": to}
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		return url.QueryEscape(values[found[1:len(found)-1]])
	})
}

func millis(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }
