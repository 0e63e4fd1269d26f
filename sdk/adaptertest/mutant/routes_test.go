package mutant

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// reply is an answer before it is written.
type reply struct {
	status int
	body   any
}

func refuse(status int, code, path, message string) reply {
	return reply{status, adapter.ErrorBody{Code: code, Message: message, Path: path}}
}

func (t *tiny) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, next := range map[string]func(*http.Request, []byte) reply{
		"GET /v1/adapter": t.describe, "GET /v1/operations": t.feed, "PUT /v1/operations/{id}": t.dispatch,
		"GET /v1/operations/{id}": t.status, "POST /v1/operations/{id}/cancel": t.cancelRoute,
		"GET /v1/instances/{id}": t.observe, "POST /v1/instances/{id}/actions/{name}": t.act,
		"GET /v1/instances/{id}/usage": t.usage, "POST /v1/plans": t.plan, "/": t.unknown,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { t.serve(w, r, next) })
	}
	return mux
}

func (t *tiny) serve(w http.ResponseWriter, r *http.Request, next func(*http.Request, []byte) reply) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4*adapter.MaxBody))
	var answer reply
	switch {
	case err != nil || !t.allowed(r, body):
		answer = refuse(http.StatusUnauthorized, "UNAUTHENTICATED", "", "the token was refused")
	case len(body) > adapter.MaxBody && !t.broken("body.large"):
		answer = refuse(http.StatusRequestEntityTooLarge, "DOCUMENT_TOO_LARGE", "", "too large")
	default:
		answer = next(r, body)
	}
	raw, err := json.Marshal(answer.body)
	if err != nil {
		answer.status, raw = http.StatusInternalServerError, []byte(`{"code":"INTERNAL","message":"not written"}`)
	}
	raw = t.unshaped(r.URL.Path, raw)
	media := "application/json"
	if t.broken("answer.form") && r.URL.Path == adapter.AdapterPath {
		media = "text/plain"
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(answer.status)
	_, _ = w.Write(raw)
}

var healthWord = regexp.MustCompile(`"health":"[a-z]*"`)

// unshaped takes away, or spoils, what the contract's schema requires of an answer.
func (t *tiny) unshaped(path string, raw []byte) []byte {
	operation := strings.HasPrefix(path, adapter.OperationsPath+"/")
	switch {
	case t.broken("describe.fields") && path == adapter.AdapterPath:
		return bytes.Replace(raw, []byte(`"displayName":"Unit",`), nil, 1)
	case t.broken("status.fields") && operation:
		return bytes.Replace(raw, []byte(`"message":"",`), nil, 1)
	case t.broken("cancel.fields") && strings.HasSuffix(path, "/cancel"):
		return bytes.Replace(raw, []byte(`,"message":"so it is"`), nil, 1)
	case t.broken("answer.schema") && operation && bytes.Contains(raw, []byte(`"drained"`)),
		t.broken("observe.words") && strings.HasPrefix(path, adapter.InstancePath("")):
		before, members, found := bytes.Cut(raw, []byte(`"members"`))
		if !found {
			return raw
		}
		members = healthWord.ReplaceAll(members, []byte(`"health":"ok"`))
		return slices.Concat(before, []byte(`"members"`), members)
	case t.broken("status.words") && operation:
		return healthWord.ReplaceAll(raw, []byte(`"health":"ok"`))
	}
	return raw
}

func (t *tiny) unknown(*http.Request, []byte) reply {
	if t.broken("route.unknown") {
		return reply{http.StatusOK, map[string]any{}}
	}
	return refuse(http.StatusNotFound, "NOT_FOUND", "", "no such path")
}

func (t *tiny) describe(*http.Request, []byte) reply {
	note := adapter.Action{
		Name: "tiny.note", DisplayName: "Note", PermissionKey: "apps.queue.submit", Risk: adapter.RiskWrite,
		InputSchema: json.RawMessage(noteInput), OutputSchema: json.RawMessage(noteOutput),
	}
	d := adapter.Description{ContractVersions: []string{"1.1", "1.0"}, Name: name, Build: "test",
		Apps: []adapter.AppInfo{{
			Slug: name, Operations: adapter.Kinds(), ConfigSchema: json.RawMessage(configSchema),
			Components:      []adapter.Component{{Key: "unit", DisplayName: "Unit", Min: 1, Max: 4, Default: 2}},
			UsageDimensions: []adapter.UsageDimension{{Name: "unit.seconds", Unit: "second"}},
		}}}
	switch {
	case t.broken("describe.valid"):
		d.Apps[0].Components[0].Default = 9
	case t.broken("describe.schemas"):
		note.OutputSchema = json.RawMessage(`{"type":"nonsense"}`)
	case t.broken("describe.manifest"):
		note.PermissionKey = "apps.tiny.note"
	case t.broken("describe.versions"):
		d.ContractVersions = []string{"0.9"}
	case t.broken("describe.stable"):
		t.disk.mu.Lock()
		t.asked++
		note.DisplayName = fmt.Sprintf("Note %d", t.asked)
		t.disk.mu.Unlock()
	}
	d.Apps[0].Actions = []adapter.Action{note}
	return reply{http.StatusOK, d}
}

// manifest is that of the app.
const manifest = `{"app":"tiny","permissionFamily":"apps","configSchema":` + configSchema + `,` +
	`"components":[{"key":"unit","min":1,"max":4,"default":2}],` +
	`"actions":[{"name":"tiny.note","permissionKey":"apps.queue.submit","risk":"write","inputSchema":` + noteInput +
	`,"outputSchema":` + noteOutput + `}],"usageDimensions":[{"name":"unit.seconds","unit":"second"}]}`

const (
	noteInput = `{"type":"object","additionalProperties":false,"required":["text"],` +
		`"properties":{"text":{"type":"string","minLength":1}}}`
	noteOutput = `{"type":"object","additionalProperties":false,"required":["noted"],` +
		`"properties":{"noted":{"type":"string"}}}`
)

const configSchema = `{"type":"object","additionalProperties":false,` +
	`"properties":{"size":{"type":"integer","minimum":1,"maximum":9}}}`

func (t *tiny) status(r *http.Request, _ []byte) reply {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	held, ok := t.disk.operations[r.PathValue("id")]
	switch {
	case !ok && t.broken("status.unknown"):
		return reply{http.StatusNotFound, map[string]any{}}
	case !ok:
		return refuse(http.StatusNotFound, "NOT_FOUND", "", "no such operation")
	}
	held.read = held.read || held.status.State.Terminal()
	return reply{http.StatusOK, held.status}
}

const epoch = "tinyepoch"

// feed is the long poll.
func (t *tiny) feed(r *http.Request, _ []byte) reply {
	seconds, _ := strconv.Atoi(r.URL.Query().Get("wait"))
	wait := time.Duration(seconds) * time.Second
	if t.broken("feed.waits") {
		wait /= 3
	}
	cursor := r.URL.Query().Get("after")
	of, text, _ := strings.Cut(cursor, ":")
	after, _ := strconv.ParseUint(text, 10, 64)
	same := of == epoch || (t.broken("feed.foreign") && cursor != "")
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := !same; ; {
		page, changed := t.page(after, same)
		if over || len(page.Operations) > 0 {
			return reply{http.StatusOK, page}
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-r.Context().Done():
			over = true
		}
	}
}

func (t *tiny) page(after uint64, same bool) (adapter.OperationsPage, <-chan struct{}) {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	var list []*record
	for _, held := range t.disk.operations {
		fresh := held.version > after || t.broken("feed.continues")
		if (same && fresh) || (!same && !held.status.State.Terminal() && !t.broken("feed.first")) {
			list = append(list, held)
		}
	}
	slices.SortFunc(list, func(a, b *record) int { return cmp.Compare(a.version, b.version) })
	most, last := adapter.MaxPage, t.disk.version
	if t.broken("feed.page") {
		most = 600
	}
	if len(list) > most {
		list = list[:most]
		last = list[most-1].version
	}
	page := adapter.OperationsPage{Epoch: epoch, Cursor: fmt.Sprintf("%s:%d", epoch, last),
		Operations: []adapter.Status{}}
	for _, held := range list {
		page.Operations = append(page.Operations, held.status)
	}
	return page, t.disk.changed
}

// decode reads a dispatch and refuses what is malformed.
func (t *tiny) decode(body []byte) (adapter.Dispatch, *reply) {
	var d adapter.Dispatch
	decoder := json.NewDecoder(bytes.NewReader(body))
	if t.broken("dispatch.unknown_fields") {
		decoder.DisallowUnknownFields()
	}
	err := decoder.Decode(&d)
	var wrong *json.UnmarshalTypeError
	if err == nil {
		return d, nil
	}
	answer := refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "", "the body cannot be read")
	switch {
	case errors.As(err, &wrong):
		answer.body = adapter.ErrorBody{Code: "INVALID_ARGUMENT", Path: wrong.Field, Message: "wrong type"}
		if t.broken("body.types") {
			answer.status = http.StatusInternalServerError
		}
	case json.Valid(body) && t.broken("body.types"):
		answer.status = http.StatusInternalServerError
	case !json.Valid(body) && t.broken("body.not_json"):
		answer.body = map[string]any{}
	}
	return d, &answer
}

// wrong is the field at fault of a dispatch; empty when it is good.
func (t *tiny) wrong(d adapter.Dispatch, id string) string {
	var config map[string]any
	if len(d.Instance.Config) > 0 && json.Unmarshal(d.Instance.Config, &config) != nil {
		return "instance.config"
	}
	size, sized := config["size"].(float64)
	more := len(config) > 1 || (len(config) == 1 && (!sized || size < 1 || size > 9))
	for field, bad := range map[string]bool{
		"operationId": d.OperationID == "" || (d.OperationID != id && !t.broken("body.id")),
		"kind":        d.Kind == "", "attempt": d.Attempt < 1, "deadline": d.Deadline.IsZero() &&
			!t.broken("body.missing"),
		"instance.id": d.Instance.ID == "", "platform.graphqlUrl": d.Platform.GraphQLURL == "",
		"platform.token": d.Platform.Token == "",
		"instance.app":   d.Instance.App == "" || (d.Instance.App != name && !t.broken("body.app")),
		"instance.config": more && !t.broken("body.config") &&
			(!d.Kind.TakesAway() || t.broken("decommission.config")),
	} {
		if bad {
			return field
		}
	}
	return t.wrongMembers(d)
}

func (t *tiny) wrongMembers(d adapter.Dispatch) string {
	ids := map[string]bool{}
	for n, member := range d.Members {
		ids[member.ID] = true
		if member.ComponentKey != "unit" && !t.broken("body.component") {
			return fmt.Sprintf("members[%d].componentKey", n)
		}
	}
	for n, id := range d.Targets {
		if !ids[id] && !t.broken("body.target") {
			return fmt.Sprintf("targets[%d]", n)
		}
	}
	if !d.Kind.Valid() {
		if t.broken("body.kind") {
			return "unknown"
		}
		return "kind"
	}
	return ""
}
