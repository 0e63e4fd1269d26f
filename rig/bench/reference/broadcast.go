package reference

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// BroadcastRole is the child that broadcasts frames that are prepared beforehand.
const BroadcastRole process.Role = "broadcast"

// Burst is what is broadcast: messages in order, and the number of the first.
type Burst struct {
	First    int
	Messages []string
}

// broadcaster writes frames to every connection that it was given.
type broadcaster struct {
	mu    sync.Mutex
	conns []net.Conn
}

// Broadcast is a child that upgrades every connection. Its command "send" writes each message, framed once, to all of
// them, one shard a core, and returns when the writing of each message began.
func Broadcast(context.Context, json.RawMessage) (process.Commands, func(), error) {
	b := &broadcaster{}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	web := &http.Server{Handler: http.HandlerFunc(b.upgrade), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }()
	stop := func() {
		_ = web.Close()
		<-done
		for _, conn := range b.conns {
			_ = conn.Close()
		}
	}
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
		"send": func(arg json.RawMessage) (any, error) {
			var burst Burst
			if err := json.Unmarshal(arg, &burst); err != nil {
				return nil, err
			}
			return b.send(burst)
		},
	}), stop, nil
}

func (b *broadcaster) upgrade(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{ReadBufferSize: 128, WriteBufferSize: 128, WriteBufferPool: &sync.Pool{}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, conn.NetConn())
}

func (b *broadcaster) send(burst Burst) (map[int]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := make(map[int]int64, len(burst.Messages))
	frames := make([][]byte, len(burst.Messages))
	for i, message := range burst.Messages {
		frames[i] = load.Frame([]byte(message))
	}
	for i, frame := range frames {
		began[burst.First+i] = time.Now().UnixNano()
		if err := b.write(frame); err != nil {
			return nil, err
		}
	}
	return began, nil
}

func (b *broadcaster) write(frame []byte) error {
	cores := runtime.GOMAXPROCS(0)
	failed := make([]error, cores)
	var shards sync.WaitGroup
	for core := range cores {
		shards.Go(func() {
			for i := core; i < len(b.conns); i += cores {
				if _, err := b.conns[i].Write(frame); err != nil {
					failed[core] = err
					return
				}
			}
		})
	}
	shards.Wait()
	return errors.Join(failed...)
}
