package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/internal/telemetry"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxRetryAfter bounds how long a receiver can put a delivery off.
const maxRetryAfter = time.Hour

// result is how one try went.
type result struct {
	delivery delivery
	ok, gone bool          // taken; answered that nothing is to be sent any more
	status   int           // of the answer; 0 for none
	text     string        // why it was not taken; shown to whoever may read the webhook
	after    time.Duration // for how long the receiver asks to be left alone
}

// post sends a batch, some requests at once, and answers in the batch's order.
func (w *Worker) post(ctx context.Context, b batch) []result {
	results := make([]result, len(b.due))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, one := range b.due {
		group.Go(func() error {
			results[i] = w.send(ctx, b, one)
			return nil
		})
	}
	_ = group.Wait()
	return results
}

// send is one try, with a trace and a line of its own.
func (w *Worker) send(ctx context.Context, b batch, one delivery) result {
	var operation string
	if one.event.OperationID != nil {
		operation = string(*one.event.OperationID)
	}
	ctx, span := w.Traces.Attempt(ctx, operation, "webhook delivery", attribute.String("delivery_id", string(one.id)),
		attribute.String("correlation_id", one.event.CorrelationID))
	began := time.Now()
	out := w.try(ctx, b, one)
	code := ""
	if !out.ok {
		code = "not accepted"
	}
	took := time.Since(began)
	w.Metrics.Webhook(ctx, took)
	w.Log.LogAttrs(ctx, slog.LevelInfo, "webhook delivery", slog.String("delivery_id", string(one.id)),
		slog.String("correlation_id", one.event.CorrelationID), telemetry.TraceID(ctx),
		slog.String("org_id", string(one.event.TenantID)), slog.String("project_id", string(one.event.ProjectID)),
		slog.String("app_slug", one.event.AppSlug), slog.String("app_instance_id", string(one.event.AppInstanceID())),
		slog.Int("status", out.status), slog.String("code", code), telemetry.Milliseconds(took))
	telemetry.End(span, code)
	return out
}

// try is send without its trace, its metrics and its log.
func (w *Worker) try(ctx context.Context, b batch, one delivery) result {
	out := result{delivery: one}
	request, err := w.request(ctx, b, one)
	if err != nil {
		out.text = "the delivery could not be prepared"
		w.Log.Error("a webhook's delivery could not be prepared", "delivery_id", one.id, "error", err)
		return out
	}
	client := w.public
	if request.URL.Scheme != "https" {
		client = w.inner
	}
	answer, err := client.Do(request)
	if err != nil {
		out.text = w.trouble(err)
		return out
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // so that the connection can be used again
	out.judge(answer, w.DB.Now())
	return out
}

// request is the signed POST of a delivery.
func (w *Worker) request(ctx context.Context, b batch, one delivery) (*http.Request, error) {
	content, err := body(one.event)
	if err != nil {
		return nil, err
	}
	at := w.DB.Now() // the receiver compares it with its own clock
	signature, err := sdk.Sign(string(one.id), at, content, b.secrets...)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.row.URL, bytes.NewReader(content))
	if err != nil {
		return nil, errors.New("the address is malformed") // the error itself would show it
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "gpuaas-webhooks/1", sdk.HeaderID: string(one.id),
		sdk.HeaderTimestamp: strconv.FormatInt(at.Unix(), 10), sdk.HeaderSignature: signature,
	} {
		request.Header.Set(name, value)
	}
	return request, nil
}

// body returns an event as receivers get it; details that would make it too long are left out, which it states.
func body(e *event.Event) ([]byte, error) {
	content := sdk.Event{Type: string(e.Type), Timestamp: e.OccurredAt, Data: sdk.Data{
		ID: string(e.ID), Cursor: e.Cursor, Seq: e.Seq, OrgID: string(e.TenantID), TenantID: string(e.TenantID),
		ProjectID:     string(e.ProjectID),
		AppSlug:       e.AppSlug,
		AppInstanceID: string(e.AppInstanceID()), AllocationID: text(e.AllocationID), VolumeID: text(e.VolumeID),
		OperationID: text(e.OperationID), MemberID: text(e.MemberID), Message: e.Message,
		Payload: e.Payload, CorrelationID: e.CorrelationID, TraceID: e.TraceID,
	}}
	encoded, err := json.Marshal(content)
	if err != nil || len(encoded) <= sdk.MaxBody {
		return encoded, err
	}
	content.Data.Payload, content.Data.PayloadOmitted = json.RawMessage(`{}`), true
	content.Data.Message = content.Data.Message[:min(len(content.Data.Message), sdk.MaxBody/8)]
	return json.Marshal(content)
}

func text(id *ids.ID) *string { return (*string)(id) }

// judge reads an answer.
func (r *result) judge(answer *http.Response, now time.Time) {
	r.status = answer.StatusCode
	switch {
	case r.status >= 200 && r.status < 300:
		r.ok = true
		return
	case r.status == http.StatusGone:
		r.gone = true
	case r.status >= 300 && r.status < 400:
		r.text = fmt.Sprintf("the receiver answered %d: redirects are not followed", r.status)
		return
	}
	r.text = fmt.Sprintf("the receiver answered %d", r.status)
	r.after = retryAfter(answer.Header.Get("Retry-After"), now)
}

// retryAfter reads seconds or a date, an hour at most; 0 for none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

// trouble returns why there was no answer, in words that reveal nothing of the network that the platform is in.
func (w *Worker) trouble(err error) string {
	var refused *dial.Refused
	var name *net.DNSError
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return "the operator does not allow webhooks to this address"
	case errors.As(err, &name):
		return "the receiver's name could not be resolved"
	case errors.As(err, &verify), errors.As(err, &record):
		return "the receiver could not be trusted: TLS failed"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the receiver did not answer within %s", w.Pace.Request)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the receiver refused the connection"
	}
	return "the connection to the receiver broke"
}
