package agent_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// standin is a stand-in for the platform's node part: it answers the operations that an agent uses by their names,
// checks credentials and fences as the platform does, and keeps what it receives. It parses no GraphQL. The agent
// against the real server is tested end to end elsewhere.
type standin struct {
	t       *testing.T
	address string

	mu        sync.Mutex
	server    *http.Server
	enrolment string
	valid     map[string]bool // credentials that work
	fresh     string          // rotated, not yet used
	life      time.Duration
	minted    int
	enrolled  gql.EnrolNodeInput
	beats     int
	kills     []gql.MemoryKillsInput  // of all heartbeats
	inventory *gql.NodeInventoryInput // the last one
	tasks     map[string]*standTask
	order     []string
	streams   map[*websocket.Conn]*sync.Mutex
	opened    int
	refuse    func(operation string) bool
	secrets   map[string]*standSecret
	deliver   func(taskID string) (any, *client.Error)
	artifacts http.Handler    // what answers below /v1/artifacts/
	storage   json.RawMessage // of the last inventory
	volumes   *standVolumes   // nil on a platform that knows none
}

// standSecret is a runtime secret as the platform keeps it.
type standSecret struct {
	sealed     string
	once       bool
	deliveries int
}

// redeem delivers a secret. With s.mu held.
func (s *standin) redeem(input json.RawMessage) (any, *client.Error) {
	var id string
	_ = json.Unmarshal(input, &id)
	secret := s.secrets[id]
	switch {
	case secret == nil:
		return nil, &client.Error{Code: client.CodeNotFound, Message: "there is no such object"}
	case secret.once && secret.deliveries > 0:
		return nil, &client.Error{Code: client.CodeSecretSpent, Message: "spent"}
	}
	secret.deliveries++
	return map[string]any{"id": id, "purpose": "joining", "version": 1, "sealed": secret.sealed,
		"expiresAt": time.Now().Add(time.Hour)}, nil
}

// standTask is a task as the platform keeps it.
type standTask struct {
	gql.NodeWork
	State    string
	reports  []gql.ReportNodeTaskInput
	exitCode *int
	result   json.RawMessage
	message  string
	output   map[string]string
}

const enrolToken = "gpu_enr_test"

func newStandin(t *testing.T) *standin {
	t.Helper()
	address, err := loopback.Address()
	require.NoError(t, err)
	s := &standin{
		t: t, enrolment: enrolToken, valid: map[string]bool{}, life: time.Hour, tasks: map[string]*standTask{},
		streams: map[*websocket.Conn]*sync.Mutex{}, address: address,
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *standin) url() string { return "http://" + s.address }

// start listens, after a stop on the same address.
func (s *standin) start() {
	listener, err := loopback.Listen(s.address)
	require.NoError(s.t, err)
	server := &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// stop cuts everything off, as a crash would.
func (s *standin) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.server.Close()
	for conn := range s.streams {
		_ = conn.Close()
	}
	s.streams = map[*websocket.Conn]*sync.Mutex{}
}

func (s *standin) serve(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.HasPrefix(r.URL.Path, "/v1/artifacts/") {
		s.artifacts.ServeHTTP(w, r)
		return
	}
	if websocket.IsWebSocketUpgrade(r) {
		s.stream(w, r, token)
		return
	}
	var body struct {
		OperationName string
		Variables     struct {
			Input    json.RawMessage
			SecretID string
			TaskID   string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, "not json", http.StatusBadRequest)
		return
	}
	if body.OperationName == "RedeemRuntimeSecret" {
		body.Variables.Input, _ = json.Marshal(body.Variables.SecretID)
	}
	if body.OperationName == "OpenArtifactDelivery" {
		body.Variables.Input, _ = json.Marshal(body.Variables.TaskID)
	}
	data, err := s.answer(body.OperationName, token, body.Variables.Input)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{
			"message": err.Message, "extensions": map[string]any{"code": err.Code, "retryable": err.Retryable}}}})
		return
	}
	field := strings.TrimPrefix(body.OperationName, "Read")
	field = strings.ToLower(field[:1]) + field[1:]
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{field: data}})
}

func (s *standin) answer(operation, token string, input json.RawMessage) (any, *client.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil && s.refuse(operation) {
		return nil, &client.Error{Code: "UNAVAILABLE", Message: "not now", Retryable: true}
	}
	if operation == "EnrolNode" {
		return s.enrol(token, input)
	}
	if !s.authentic(token) {
		return nil, &client.Error{Code: client.CodeUnauthenticated, Message: "the credential is not valid"}
	}
	switch operation {
	case "RotateNodeCredential":
		s.fresh = s.mint()
		return map[string]any{"credential": s.fresh, "expiresAt": time.Now().Add(s.life)}, nil
	case "NodeHeartbeat":
		s.beats++
		var beat gql.NodeHeartbeatInput
		_ = json.Unmarshal(input, &beat)
		s.stored(input)
		s.kills, s.inventory = append(s.kills, beat.MemoryKills...), cmp.Or(beat.Inventory, s.inventory)
		return map[string]any{"id": "nod_1"}, nil
	case "ReportNodeTask":
		return s.report(input)
	case "ReadNodeVolumes", "ReportVolumes":
		return s.keeps(operation, input)
	case "AppendNodeTaskOutput":
		return s.append(input)
	case "RedeemRuntimeSecret":
		return s.redeem(input)
	case "OpenArtifactDelivery":
		var id string
		_ = json.Unmarshal(input, &id)
		return s.deliver(id)
	}
	return nil, &client.Error{Code: "DOCUMENT_INVALID", Message: operation}
}

// authentic ends the earlier credential at the first use of the fresh one.
func (s *standin) authentic(token string) bool {
	if token != "" && token == s.fresh {
		s.valid, s.fresh = map[string]bool{token: true}, ""
	}
	return s.valid[token]
}

func (s *standin) mint() string {
	s.minted++
	return fmt.Sprintf("gpu_nod_%d", s.minted)
}

func (s *standin) enrol(token string, input json.RawMessage) (any, *client.Error) {
	if token != s.enrolment {
		return nil, &client.Error{Code: client.CodeUnauthenticated, Message: "the enrolment token is not valid"}
	}
	s.enrolment = ""
	if err := json.Unmarshal(input, &s.enrolled); err != nil {
		return nil, &client.Error{Code: "INVALID_ARGUMENT", Message: err.Error()}
	}
	credential := s.mint()
	s.valid = map[string]bool{credential: true}
	node := map[string]any{"id": "nod_1", "name": s.enrolled.Name}
	return map[string]any{"node": node, "credential": credential, "expiresAt": time.Now().Add(s.life)}, nil
}

func (s *standin) report(input json.RawMessage) (any, *client.Error) {
	var report gql.ReportNodeTaskInput
	if err := json.Unmarshal(input, &report); err != nil {
		return nil, &client.Error{Code: "INVALID_ARGUMENT", Message: err.Error()}
	}
	known := s.tasks[report.TaskId]
	switch {
	case known == nil:
		return nil, &client.Error{Code: "NOT_FOUND", Message: report.TaskId}
	case report.Fence < known.Fence:
		return nil, &client.Error{Code: client.CodeStaleFence, Message: report.TaskId}
	case known.CancelRequested && report.State == gql.NodeTaskStateRunning && report.ProgressDone == nil &&
		!known.ended():
		return nil, &client.Error{Code: client.CodeConflict, Message: report.TaskId + " is withdrawn"}
	}
	known.reports = append(known.reports, report)
	if !known.ended() {
		known.State, known.exitCode, known.result, known.message = string(report.State), report.ExitCode, report.Result,
			report.Message
	}
	return map[string]any{"id": report.TaskId}, nil
}

func (t *standTask) ended() bool { return t.State != "PENDING" && t.State != "RUNNING" }

func (s *standin) append(input json.RawMessage) (any, *client.Error) {
	var piece gql.AppendNodeTaskOutputInput
	if err := json.Unmarshal(input, &piece); err != nil {
		return nil, &client.Error{Code: "INVALID_ARGUMENT", Message: err.Error()}
	}
	known := s.tasks[piece.TaskId]
	if known == nil || piece.Fence < known.Fence {
		return nil, &client.Error{Code: client.CodeStaleFence, Message: piece.TaskId}
	}
	have := known.output[string(piece.Stream)]
	if end := piece.Offset + len(piece.Data); piece.Offset <= len(have) && end > len(have) {
		known.output[string(piece.Stream)] = have + piece.Data[len(have)-piece.Offset:]
	}
	return len(known.output[string(piece.Stream)]), nil
}

// stream speaks graphql-transport-ws as far as one subscription needs it.
func (s *standin) stream(w http.ResponseWriter, r *http.Request, token string) {
	s.mu.Lock()
	authentic := s.authentic(token)
	s.mu.Unlock()
	if !authentic {
		http.Error(w, "", http.StatusUnauthorized)
		return
	}
	conn, err := (&websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		var got struct{ ID, Type string }
		if conn.ReadJSON(&got) != nil {
			break
		}
		switch got.Type {
		case "connection_init":
			_ = conn.WriteJSON(map[string]any{"type": "connection_ack"})
		case "subscribe":
			s.subscribe(conn)
		}
	}
	s.mu.Lock()
	delete(s.streams, conn)
	s.mu.Unlock()
}

func (s *standin) subscribe(conn *websocket.Conn) {
	s.mu.Lock()
	s.opened++
	s.streams[conn] = &sync.Mutex{}
	var open []gql.NodeWork
	for _, id := range s.order {
		if !s.tasks[id].ended() {
			open = append(open, s.tasks[id].NodeWork)
		}
	}
	s.mu.Unlock()
	for _, task := range open {
		s.push(task)
	}
}

// push sends a task to every stream.
func (s *standin) push(task gql.NodeWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, lock := range s.streams {
		lock.Lock()
		_ = conn.WriteJSON(map[string]any{"id": "1", "type": "next",
			"payload": map[string]any{"data": map[string]any{"nodeTasks": task}}})
		lock.Unlock()
	}
}
