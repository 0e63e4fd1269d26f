package server

import (
	"os"

	"github.com/spf13/pflag"
)

// bindLinks ties the templates of the installation's own tools to flags, whose defaults are the environment's.
func (c *Config) bindLinks(flags *pflag.FlagSet) {
	const has = "; https, or http to this machine; it may have {trace_id}, {correlation_id}, {operation_id}, " +
		"{app_instance_id}, {project_id}, and {from} and {to} in milliseconds"
	flags.StringVar(&c.Links.Trace, "trace-url-template", os.Getenv("TRACE_URL_TEMPLATE"),
		"address of a trace in your own tools, shown by triage, such as "+
			"https://grafana.example.com/explore?trace={trace_id}"+has+" (default $TRACE_URL_TEMPLATE)")
	flags.StringVar(&c.Links.Logs, "logs-url-template", os.Getenv("LOGS_URL_TEMPLATE"),
		"address of a request's log lines in your own tools, with the same placeholders (default $LOGS_URL_TEMPLATE)")
	flags.StringVar(&c.Links.Dashboard, "dashboard-url-template", os.Getenv("DASHBOARD_URL_TEMPLATE"),
		"address of a dashboard of an instance in your own tools, with the same placeholders (default "+
			"$DASHBOARD_URL_TEMPLATE)")
}
