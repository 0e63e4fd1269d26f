package mutant

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// look runs a node task that is not part of an operation.
func (t *tiny) look(
	ctx context.Context, p adapter.Platform, member, key string, kind adapter.TaskKind, spec any,
) error {
	return node(ctx, func() adapter.Platform { return p }, member, key, kind, spec, func() bool { return false })
}

func (t *tiny) find(id string) (known, bool) {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	held, ok := t.disk.instances[id]
	if ok && t.broken("tenancy.names") {
		for _, other := range t.disk.instances {
			if other != held && !other.gone && other.instance.Name == held.instance.Name {
				held = other
				break
			}
		}
	}
	if !ok || held.gone {
		return known{}, false
	}
	return *held, true
}

func (t *tiny) observe(r *http.Request, _ []byte) reply {
	held, ok := t.find(r.PathValue("id"))
	seen := adapter.Observation{
		InstanceID: r.PathValue("id"), Health: adapter.Healthy, Members: []adapter.MemberObservation{},
		ObservedAt: time.Now().UTC(),
	}
	switch {
	case !ok && t.broken("observe.unknown"):
		return reply{http.StatusOK, seen}
	case !ok:
		return refuse(http.StatusNotFound, "NOT_FOUND", "", "no such instance")
	}
	access := adapter.Platform{GraphQLURL: t.platform + "/graphql", Token: r.Header.Get(adapter.HeaderPlatformToken)}
	for _, member := range held.members {
		key := "look." + rand.Text()
		err := t.look(r.Context(), access, member.ID, key, adapter.TaskResidue, adapter.ResidueQuery{})
		if err != nil && t.broken("tenancy.token") {
			err = t.look(r.Context(), t.kept(held.instance.ID), member.ID, key, adapter.TaskResidue,
				adapter.ResidueQuery{})
		}
		one := adapter.MemberObservation{ID: member.ID, Health: adapter.Healthy}
		if err != nil && !t.broken("observe.honest") {
			one.Health, seen.Health = adapter.HealthUnknown, adapter.HealthUnknown
			if t.broken("observe.patient") {
				one.Status = adapter.MemberFailed
			}
		}
		if t.broken("upgrade.looks") {
			_ = t.look(r.Context(), access, member.ID, key+".look", adapter.TaskRun, looking)
		}
		if t.broken("observe.harmless") {
			_ = t.look(
				r.Context(), access, member.ID, key+".mend", adapter.TaskWriteFile,
				adapter.WriteFile{Path: "/srv/tiny/mended", MakeDirs: true},
			)
		}
		seen.Members = append(seen.Members, one)
	}
	if held.headless {
		seen.Health = adapter.Unhealthy
	}
	if t.broken("observe.valid") {
		seen.Health = "fine"
	}
	if t.broken("tenancy.answers") {
		seen.Message = t.others(held.instance.ID)
	}
	if t.broken("answer.size") {
		seen.Message = strings.Repeat("so it is ", 150_000)
	}
	return reply{http.StatusOK, seen}
}

// looking is a command that changes nothing; workPath is a file that represents work, for as long as it is there.
var looking = adapter.RunCommand{Command: []string{"true"}}

const workPath = "/srv/tiny/work"

// others names the instances beside one.
func (t *tiny) others(id string) (text string) {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	for other := range t.disk.instances {
		if other != id {
			text += " " + other
		}
	}
	return text
}

// kept is a token that an operation of the instance came with.
func (t *tiny) kept(id string) (found adapter.Platform) {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	for _, held := range t.disk.operations {
		if held.dispatch.Instance.ID == id {
			found = held.dispatch.Platform
		}
	}
	return found
}

func (t *tiny) act(r *http.Request, body []byte) reply {
	var request adapter.ActionRequest
	if json.Unmarshal(body, &request) != nil {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "", "not JSON")
	}
	var input map[string]any
	_ = json.Unmarshal(request.Input, &input)
	text, isText := input["text"].(string)
	key := request.Instance.ID + " " + request.IdempotencyKey
	if t.broken("tenancy.keys") {
		key = request.IdempotencyKey
	}
	switch {
	case r.PathValue("name") != "tiny.note" && t.broken("action.unknown"):
		return reply{http.StatusOK, adapter.ActionResult{Output: json.RawMessage(`{}`)}}
	case r.PathValue("name") != "tiny.note":
		return refuse(http.StatusNotFound, "NOT_FOUND", "", "no such action")
	case (!isText || text == "" || len(input) != 1) && !t.broken("action.input"):
		return refuse(
			http.StatusUnprocessableEntity, "INVALID_ARGUMENT", "input.text",
			"text is missing, or something else is there",
		)
	}
	t.disk.mu.Lock()
	used, before := t.disk.actions[key]
	t.disk.actions[key] = text
	t.disk.mu.Unlock()
	if before && used != text && !t.broken("action.key_reused") {
		return refuse(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED", "idempotencyKey", "used with another input")
	}
	if t.broken("action.refused") {
		return refuse(http.StatusUnprocessableEntity, "NO_REPLICA", "", "there is nobody to note it")
	}
	if before && t.broken("tenancy.keys") {
		raw, _ := json.Marshal(map[string]any{"noted": text})
		return reply{http.StatusOK, adapter.ActionResult{Output: raw}}
	}
	note := adapter.WriteFile{Path: "/srv/tiny/note", Content: text, MakeDirs: true}
	taskKey := "act." + key + "." + text + nonceOr(t.broken("action.idempotent"))
	member := request.Members[0].ID
	if _, of, work := strings.Cut(text, "work on "); work {
		note.Path, member = workPath, of
	}
	if err := t.look(r.Context(), request.Platform, member, taskKey, adapter.TaskWriteFile, note); err != nil {
		return refuse(http.StatusUnprocessableEntity, "NODE_TASK_FAILED", "", err.Error())
	}
	output := map[string]any{"noted": text}
	if t.broken("action.output") {
		output["more"] = 1
	}
	raw, _ := json.Marshal(output)
	return reply{http.StatusOK, adapter.ActionResult{Output: raw}}
}

// usage counts one record for each member, cut into pages of two.
func (t *tiny) usage(r *http.Request, _ []byte) reply {
	held, ok := t.find(r.PathValue("id"))
	if !ok {
		return refuse(http.StatusNotFound, "NOT_FOUND", "", "no such instance")
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	if t.broken("usage.cursor") {
		after = 0
	}
	page := adapter.UsagePage{Records: []adapter.UsageRecord{}}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := after; n < len(held.members) && len(page.Records) < 1; n++ {
		record := adapter.UsageRecord{
			ID:        held.instance.ID + "." + held.members[n].ID + nonceOr(t.broken("usage.stable")),
			Dimension: "unit.seconds",
			Quantity:  "60.5", From: began, To: began.Add(time.Minute), MemberID: held.members[n].ID,
		}
		if t.broken("crash.usage") && t.incarnation > 1 { // its ids are of the process that counts
			record.ID += fmt.Sprint(".", t.incarnation)
		}
		if t.broken("usage.valid") {
			record.Quantity = "many"
		}
		page.Records = append(page.Records, record)
		after = n + 1
	}
	if t.broken("usage.skips") && after < len(held.members) {
		after++
	}
	page.Cursor, page.Count = fmt.Sprint(after), after
	return reply{http.StatusOK, page}
}

func (t *tiny) plan(r *http.Request, body []byte) reply {
	var request adapter.PlanRequest
	if json.Unmarshal(body, &request) != nil {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "", "not JSON")
	}
	plan := adapter.PlanAnswer{
		Verdict: adapter.VerdictSafe, Reasons: []adapter.PlanReason{}, WorkLost: []adapter.Work{},
		Message: "nothing runs",
	}
	planned := adapter.Dispatch{Kind: request.Kind, Members: request.Members, Targets: request.Targets}
	if field := t.wrongMembers(planned); field != "" {
		if t.broken("plan.refusal") {
			return refuse(http.StatusUnprocessableEntity, "INVALID_ARGUMENT", field, "wrong")
		}
		plan.Verdict, plan.Reasons = adapter.VerdictUnsafe, []adapter.PlanReason{
			{Code: "INVALID_ARGUMENT", Message: field + " is wrong", Path: field},
		}
	}
	if t.broken("plan.valid") {
		plan.Verdict = "maybe"
	}
	if t.broken("plan.harmless") {
		_ = t.look(
			r.Context(), request.Platform, request.Members[0].ID, "plan."+rand.Text(), adapter.TaskWriteFile,
			adapter.WriteFile{Path: "/srv/tiny/planned", MakeDirs: true},
		)
	}
	return reply{http.StatusOK, plan}
}
