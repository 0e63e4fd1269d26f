package optrace

import (
	"fmt"
	"net/url"
	"strings"
)

// protocol is the one way of OTLP that is spoken.
const protocol = "http/protobuf"

// Receiver returns the address that traces are sent to, by OpenTelemetry's standard variables; none when they are off.
func Receiver(getenv func(string) string) (string, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q: set it to otlp or none", exporter)
	}
	name, endpoint := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if endpoint == "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
		if endpoint != "" {
			endpoint = strings.TrimRight(endpoint, "/") + "/v1/traces"
		}
	}
	if endpoint == "" {
		return "", nil
	}
	if at, err := url.Parse(endpoint); err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return "", fmt.Errorf("%s is not an address: set it to one such as http://collector:4318", name)
	}
	spoken := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if spoken == "" {
		spoken = getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if spoken != "" && spoken != protocol {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: set it to %s", spoken, protocol)
	}
	return endpoint, nil
}
