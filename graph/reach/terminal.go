package reach

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/endpoint"
	"github.com/gpuaas/app-platform/transport"
)

// TerminalProtocol is the WebSocket subprotocol of a terminal in the console, on tunnel.ExecPath. The first message is
// an opening, as JSON. Then binary messages are frames: the kind in the first byte, what it carries in the rest. A text
// from here is {"opened":true}, or why the terminal ends, in the platform's envelope.
const TerminalProtocol = "app-platform-exec"

const (
	// taken is the frame by which a browser says how many bytes of output it has drawn, four bytes, the highest first.
	taken tunnel.Frame = 255
	// unread is how many bytes of output may be on their way to a browser: one that draws none stops the command.
	unread = 512 << 10
	// terminalIdle is how long a terminal stays open though nothing is typed or printed.
	terminalIdle = 30 * time.Minute
	// heartbeat is the interval between two pings; a browser that has answered none for three of them has vanished.
	heartbeat = 20 * time.Second
	// openingTime bounds the wait for the opening, and each write.
	openingTime = 20 * time.Second
)

// opening is a browser's request for a terminal.
type opening struct {
	Member  ids.ID   `json:"member"`
	Command []string `json:"command"`
	User    string   `json:"user"`
	Reason  string   `json:"reason"`
	Rows    uint16   `json:"rows"`
	Cols    uint16   `json:"cols"`
}

// browser serves a terminal to a page of ours, by the cookie of its login.
func (r *Relay) browser(w http.ResponseWriter, request *http.Request, authenticate Authenticate) {
	id := transport.RequestCorrelationID(request)
	w.Header().Set(transport.CorrelationHeader, id)
	ctx := transport.WithCorrelationID(request.Context(), id)
	ctx, err := r.visitor(ctx, request, authenticate)
	if err != nil {
		denial.Answer(ctx, w, err, 0)
		return
	}
	upgrader := websocket.Upgrader{HandshakeTimeout: openingTime, Subprotocols: []string{TerminalProtocol},
		CheckOrigin: func(*http.Request) bool { return true }} // visitor has checked more than that
	socket, err := upgrader.Upgrade(w, request, http.Header{transport.CorrelationHeader: {id}})
	if err != nil {
		return // already answered
	}
	t := &terminal{socket: socket}
	t.moved.Store(time.Now().Unix())
	t.room = sync.NewCond(&t.mu)
	defer t.close()
	if err := r.work(ctx, t); err != nil {
		t.refuse(ctx, err)
	}
}

// visitor reads who calls from the cookie, which acts for our own pages alone.
func (r *Relay) visitor(ctx context.Context, request *http.Request, authenticate Authenticate) (context.Context,
	error) {
	if !transport.SameOrigin(request, r.Origins) {
		return ctx, fault.New(fault.Forbidden, "a page of another origin may not open a terminal")
	}
	shown, refused := transport.RequestCredential(request)
	if refused != nil || shown.Source != transport.SourceCookie {
		return ctx, fault.New(fault.Unauthenticated,
			"log in: a terminal in a browser is opened by the cookie of a login")
	}
	return authenticate(ctx, shown, request)
}

// work opens the command and passes frames until it ends. Its error is the reason that the browser gets.
func (r *Relay) work(ctx context.Context, t *terminal) error {
	wanted, err := t.opening()
	if err != nil {
		return err
	}
	in := endpoint.CommandInput{MemberID: wanted.Member, Reason: wanted.Reason,
		Exec: tunnel.Exec{Command: wanted.Command,
			User: wanted.User, TTY: true, Rows: wanted.Rows, Cols: wanted.Cols}}
	node, tenant, open, err := r.Endpoints.Command(ctx, in)
	if err != nil {
		return err
	}
	there, err := r.Open(ctx, tenant, node, open)
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	ended := make(chan error, 4)
	forget := r.Sentinel.Watch(ctx, "terminal "+string(in.MemberID), func(ctx context.Context) error {
		return r.Endpoints.MayCommand(ctx, in.MemberID)
	}, func(err error) { ended <- err })
	defer forget()
	if err := t.say(map[string]bool{"opened": true}); err != nil {
		return nil //nolint:nilerr // the browser has left
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { ended <- t.input(there) }()
	go func() { ended <- t.output(there) }()
	go func() { ended <- t.watch(stop) }()
	return <-ended
}

// terminal is a browser's end of a command.
type terminal struct {
	socket *websocket.Conn
	moved  atomic.Int64 // when something was typed or printed last, in unix seconds

	writing sync.Mutex

	mu     sync.Mutex
	room   *sync.Cond // the browser has drawn something, or is closed
	onWay  int        // bytes of output that it has not drawn
	closed bool
}

// opening reads the first message.
func (t *terminal) opening() (opening, error) {
	var wanted opening
	t.socket.SetReadLimit(tunnel.MaxFrame + 1)
	_ = t.socket.SetReadDeadline(time.Now().Add(openingTime))
	kind, text, err := t.socket.ReadMessage()
	if err == nil && kind == websocket.TextMessage {
		err = json.Unmarshal(text, &wanted)
	}
	if err != nil || kind != websocket.TextMessage {
		return wanted, fault.New(fault.InvalidArgument, "the first message must be the opening of a terminal, as JSON")
	}
	return wanted, nil
}

// input passes what is typed to the command, until the browser leaves.
func (t *terminal) input(to io.Writer) error {
	alive := func(string) error { return t.socket.SetReadDeadline(time.Now().Add(3 * heartbeat)) }
	t.socket.SetPongHandler(alive)
	for _ = alive(""); ; _ = alive("") {
		kind, message, err := t.socket.ReadMessage()
		if err != nil {
			return nil //nolint:nilerr // the browser has left
		}
		if kind != websocket.BinaryMessage || len(message) == 0 {
			return fault.New(fault.InvalidArgument, "a terminal takes binary frames only")
		}
		frame, carries := tunnel.Frame(message[0]), message[1:]
		switch frame {
		case taken:
			t.drawn(carries)
			continue
		case tunnel.Input, tunnel.InputEnd, tunnel.Size:
		default:
			return fault.New(fault.InvalidArgument, "a terminal does not take frames of kind %d", frame)
		}
		if frame == tunnel.Input {
			t.moved.Store(time.Now().Unix())
		}
		if err := tunnel.WriteFrame(to, frame, carries); err != nil {
			return broken()
		}
	}
}

// drawn takes note of output that the browser has drawn.
func (t *terminal) drawn(carries []byte) {
	rows, cols := tunnel.ReadSize(carries) // four bytes in two parts
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onWay = max(0, t.onWay-(int(rows)<<16|int(cols)))
	t.room.Broadcast()
}

// output passes what the command prints to the browser, as fast as that draws it, until its exit code.
func (t *terminal) output(from io.Reader) error {
	for {
		kind, carries, err := tunnel.ReadFrame(from)
		if err != nil {
			return broken()
		}
		t.moved.Store(time.Now().Unix())
		if !t.await(len(carries)) {
			return nil
		}
		if err := t.write(websocket.BinaryMessage, append([]byte{byte(kind)}, carries...)); err != nil {
			return nil //nolint:nilerr // the browser has left
		}
		if kind == tunnel.Exit {
			return nil
		}
	}
}

// broken is the fault of a command whose connection broke.
func broken() error {
	return fault.New(fault.Unavailable,
		"the connection to the member broke, and the command has ended: open another terminal")
}

// await waits until the browser has drawn enough to take more; not ok when it has left.
func (t *terminal) await(bytes int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.onWay > unread && !t.closed {
		t.room.Wait()
	}
	t.onWay += bytes
	return !t.closed
}

// watch ends a terminal at which nothing happens, and lets input notice a browser that has vanished.
func (t *terminal) watch(stop <-chan struct{}) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return nil
		case now := <-ticker.C:
			if now.Sub(time.Unix(t.moved.Load(), 0)) > terminalIdle {
				return fault.New(fault.Unavailable,
					"nothing was typed or printed for %d minutes, and the terminal has ended",
					int(terminalIdle.Minutes()))
			}
			_ = t.socket.WriteControl(websocket.PingMessage, nil, now.Add(openingTime))
		}
	}
}

// refuse sends the browser the reason why the terminal ends.
func (t *terminal) refuse(ctx context.Context, err error) {
	_ = t.say(denial.Envelope(ctx, err)) // it may have left
}

// say writes a text.
func (t *terminal) say(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return t.write(websocket.TextMessage, text)
}

func (t *terminal) write(kind int, message []byte) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	_ = t.socket.SetWriteDeadline(time.Now().Add(openingTime))
	return t.socket.WriteMessage(kind, message)
}

// close ends the browser's side.
func (t *terminal) close() {
	t.mu.Lock()
	t.closed = true
	t.room.Broadcast()
	t.mu.Unlock()
	farewell := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = t.socket.WriteControl(websocket.CloseMessage, farewell, time.Now().Add(time.Second))
	_ = t.socket.Close()
}
