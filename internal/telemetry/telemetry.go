// Package telemetry sends traces to any OTLP receiver. It is set up by OpenTelemetry's standard environment and is off
// until that names a receiver.
package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/gpuaas/app-platform/sdk/optrace"
)

// scope names what makes the platform's spans.
const scope = "github.com/gpuaas/app-platform"

// Source makes the spans of one program.
type Source struct {
	provider trace.TracerProvider
	off      bool
	stop     func(context.Context) error
}

// Off returns a source that records nothing.
func Off() *Source {
	return &Source{provider: noop.NewTracerProvider(), off: true, stop: func(context.Context) error { return nil }}
}

// Open returns the source that the environment configures. It returns one that is off when no receiver is named, when
// OTEL_SDK_DISABLED is true, and when OTEL_TRACES_EXPORTER is none. Samplers, batches and headers are set by their own
// standard variables.
func Open(ctx context.Context, program string, getenv func(string) string) (*Source, error) {
	endpoint, err := optrace.Receiver(getenv)
	if err != nil {
		return nil, err
	}
	if endpoint == "" {
		return Off(), nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	// What the environment says of the program comes last, so that an operator can name it otherwise.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", program)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about),
		sdktrace.WithIDGenerator(optrace.IDs()))
	return &Source{provider: provider, stop: provider.Shutdown}, nil
}

// Provider returns what libraries that make spans of their own are given.
func (s *Source) Provider() trace.TracerProvider { return s.provider }

// Tracer returns the maker of the platform's own spans.
func (s *Source) Tracer() trace.Tracer { return s.provider.Tracer(scope) }

// Close sends what has not been sent yet, until the context ends.
func (s *Source) Close(ctx context.Context) error { return s.stop(ctx) }
