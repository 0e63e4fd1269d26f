package platform

import (
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// accepted records when each operation's first transaction had committed, which is the moment at which an
// operation is accepted.
type accepted struct {
	hub tx.Hints // receives every hint too

	mu sync.Mutex
	at map[string]int64 // operation id → nanoseconds since 1970; nil until the first take
}

// operationTopic begins the topics of operations.
var operationTopic = event.OperationTopic("")

// Wake implements tx.Hints.
func (a *accepted) Wake(topics ...string) {
	now := time.Now().UnixNano()
	a.hub.Wake(topics...)
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

// take returns what was recorded since the last take.
func (a *accepted) take() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.at
	a.at = make(map[string]int64)
	return taken
}
