package platform

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/service/ledger/event"
)

// accepted passes hints on to the hub, and notes when each operation's first transaction had
// committed: that is the moment at which an operation is accepted.
type accepted struct {
	hub atomic.Pointer[event.Hub]

	mu sync.Mutex
	at map[string]int64 // operation id → nanoseconds since 1970; nil until somebody asks for it
}

// operationTopic begins the topics of operations.
var operationTopic = event.OperationTopic("")

// Wake implements tx.Hints.
func (a *accepted) Wake(topics ...string) {
	now := time.Now().UnixNano()
	if hub := a.hub.Load(); hub != nil {
		hub.Wake(topics...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, topic := range topics {
		id, ok := strings.CutPrefix(topic, operationTopic)
		if !ok {
			continue
		}
		if _, known := a.at[id]; !known && a.at != nil {
			a.at[id] = now
		}
	}
}

// take answers what was noted since it was last asked.
func (a *accepted) take() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.at
	a.at = make(map[string]int64)
	return taken
}
