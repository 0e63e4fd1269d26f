package operations

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/optrace"
)

// Trace returns the commands on operations' traces.
func Trace(t *command.Tool) *cobra.Command {
	return command.Group("trace", "Send the traces of operations", emit(t))
}

func emit(t *command.Tool) *cobra.Command {
	var to string
	cmd := command.Verb(t, "emit OPERATION", "Send the whole trace of an operation that has ended", viewTrace,
		func(ctx context.Context, args []string) (*sent, error) {
			receiver, err := optrace.Receiver(func(name string) string {
				switch {
				case to == "":
					return os.Getenv(name)
				case name == "OTEL_EXPORTER_OTLP_ENDPOINT":
					return to
				}
				return ""
			})
			if err != nil {
				return nil, err
			}
			if receiver == "" {
				return nil, errors.New("no receiver of traces is named: " +
					"set --to, or OTEL_EXPORTER_OTLP_ENDPOINT, to one such as http://collector:4318")
			}
			answer, err := gql.ShowOperation(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			return send(ctx, receiver, &answer.Operation.OperationDetail)
		})
	cmd.Long = `Send the whole trace of an operation that has ended: a span for the operation and one for each step,
built from their records. The platform sends it when the operation ends, if traces are on. The trace's id is derived
from the operation's, so it is the same each time that the trace is sent.

OTEL_EXPORTER_OTLP_HEADERS is what the receiver requires, such as a key.`
	cmd.Flags().StringVar(&to, "to", "",
		"the receiver of traces by OTLP over HTTP, such as http://collector:4318 (default: "+
			"OTEL_EXPORTER_OTLP_ENDPOINT)")
	return cmd
}

// sent is a trace that the receiver took.
type sent struct {
	OperationID string `json:"operationId"`
	TraceID     string `json:"traceId"`
	Spans       int    `json:"spans"`
}

func viewTrace(one *sent) command.View {
	return command.Detail(one, one.TraceID, func(p *render.Page) {
		p.Fields("Operation", one.OperationID, "Trace", one.TraceID, "Spans", fmt.Sprint(one.Spans))
	})
}

// send sends an operation's trace and waits until the receiver has taken it.
func send(ctx context.Context, receiver string, op *gql.OperationDetail) (*sent, error) {
	if op.EndedAt == nil {
		return nil, fmt.Errorf("operation %s has not ended: wait for its trace with appctl operation wait %s",
			op.Id, op.Id)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(receiver))
	if err != nil {
		return nil, fmt.Errorf("open the receiver of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	kept := &receipt{SpanExporter: exporter}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithIDGenerator(optrace.IDs()),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(about))
	optrace.Emit(ctx, provider, stored(op))
	err = errors.Join(kept.err, provider.Shutdown(ctx))
	if err != nil {
		return nil, fmt.Errorf("the receiver did not accept the trace: %w", err)
	}
	return &sent{OperationID: op.Id, TraceID: optrace.Context(op.Id).TraceID().String(), Spans: kept.spans}, nil
}

// receipt is an exporter that counts what it sent and keeps the errors, which a provider only logs.
type receipt struct {
	sdktrace.SpanExporter
	spans int
	err   error
}

// ExportSpans implements sdktrace.SpanExporter. A provider with a syncer calls it once a span, one after the other.
func (r *receipt) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	r.spans += len(spans)
	r.err = errors.Join(r.err, err)
	return err
}

// stored returns an operation in the form that its trace is built from.
func stored(op *gql.OperationDetail) *optrace.Operation {
	out := &optrace.Operation{ID: op.Id, Kind: string(op.Kind), State: string(op.State),
		CorrelationID: op.CorrelationId,
		ProjectID:     op.ProjectId, InstanceID: render.Text(op.InstanceId), CreatedAt: op.CreatedAt,
		EndedAt: *op.EndedAt}
	if op.Error != nil {
		out.ErrorCode, out.ErrorOwner = op.Error.Code, string(op.Error.Owner)
	}
	for _, step := range op.Steps {
		out.Steps = append(out.Steps, optrace.Step{Name: step.Name, State: string(step.State), Attempt: step.Attempt,
			StartedAt: step.StartedAt, EndedAt: step.EndedAt})
	}
	return out
}
