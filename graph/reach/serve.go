package reach

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/endpoint"
	"github.com/gpuaas/app-platform/transport"
)

// Authenticate reads a credential into the context, as for the API.
type Authenticate func(context.Context, transport.Credential, *http.Request) (context.Context, error)

// Run closes every tunnel when ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, session := range r.nodes {
		_ = session.Close()
	}
	for _, session := range r.peers {
		_ = session.Close()
	}
	return nil
}

// Nodes serves tunnel.NodePath: it takes the connection of an agent and holds it until it breaks, or until the node's
// credential ends. A node has one: a newer connection takes the place of an older one.
func (r *Relay) Nodes(authenticate Authenticate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, err := begin(w, request, authenticate)
		if err != nil {
			denial.Answer(ctx, w, err, 0)
			return
		}
		node, err := r.Endpoints.Node(ctx)
		if err != nil {
			denial.Answer(ctx, w, err, 0)
			return
		}
		session, err := accept(w, true)
		if err != nil {
			r.Log.WarnContext(ctx, "a node's tunnel broke as it began", "node_id", node, "error", err)
			return
		}
		forget := r.Sentinel.Watch(ctx, "tunnel", func(ctx context.Context) error {
			_, err := r.Endpoints.Node(ctx)
			return err
		}, func(error) { _ = session.Close() })
		defer forget()
		r.hold(context.WithoutCancel(ctx), node, session)
	})
}

// hold keeps a node's tunnel until it ends.
func (r *Relay) hold(ctx context.Context, node ids.ID, session *tunnel.Session) {
	r.mu.Lock()
	before := r.nodes[node]
	if r.nodes == nil {
		r.nodes = make(map[ids.ID]*tunnel.Session)
	}
	r.nodes[node] = session
	r.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	defer func() { _ = session.Close() }()
	if err := r.Endpoints.Attach(ctx, node); err != nil {
		r.Log.WarnContext(ctx, "a node's tunnel could not be noted", "node_id", node, "error", err)
	}
	<-session.Done()
	r.mu.Lock()
	last := r.nodes[node] == session
	if last {
		delete(r.nodes, node)
	}
	r.mu.Unlock()
	if !last {
		return
	}
	if err := r.Endpoints.Detach(ctx, node); err != nil {
		r.Log.WarnContext(ctx, "the end of a node's tunnel could not be noted", "node_id", node, "error", err)
	}
}

// Peers serves tunnel.PeerPath: other processes of the platform reach the nodes whose tunnels are held here.
func (r *Relay) Peers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx := request.Context()
		text, _ := transport.Bearer(request.Header.Get("Authorization"))
		if _, err := r.Keys.VerifyPeer(text, time.Now()); err != nil || !tunnel.Wanted(request) {
			denial.Answer(ctx, w, fault.New(fault.Unauthenticated, "this is for the platform's own processes"), 0)
			return
		}
		session, err := accept(w, false)
		if err != nil {
			r.Log.WarnContext(ctx, "a peer's connection broke as it began", "error", err)
			return
		}
		err = session.Serve(context.WithoutCancel(ctx), r.pass)
		r.Log.DebugContext(ctx, "a peer's connection ended", "error", err)
	})
}

// pass passes a peer's stream on to the agent of a node.
func (r *Relay) pass(_ context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var wanted tunnel.Node
	if err := json.Unmarshal(open.Spec, &wanted); err != nil || open.Kind != tunnel.KindNode {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a peer must name a node"}
	}
	away := &tunnel.Refusal{Code: tunnel.NoMember, Message: "the node's tunnel is not here"}
	held := r.held(ids.ID(wanted.NodeID))
	if held == nil {
		return away
	}
	conn, err := held.Through()
	if err != nil {
		return away
	}
	if err := stream.Granted(); err != nil {
		_ = conn.Close()
		return err
	}
	tunnel.Join(stream.Conn, conn)
	return nil
}

// Connections serves tunnel.ConnectPath: a program's connection to an endpoint, or to the SSH server of a member, with
// its own credential. It ends within five seconds of the right's end.
func (r *Relay) Connections(authenticate Authenticate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, err := begin(w, request, authenticate)
		switch query := request.URL.Query(); {
		case err != nil:
		case query.Has("instance") || query.Has("endpoint"):
			err = r.connect(ctx, w, request)
		default:
			err = r.session(ctx, w, ids.ID(query.Get("member")), query.Get("reason"))
		}
		if err != nil {
			denial.Answer(ctx, w, err, 0)
		}
	})
}

// connect returns an error only where nothing has been answered yet.
func (r *Relay) connect(ctx context.Context, w http.ResponseWriter, request *http.Request) error {
	query := request.URL.Query()
	wanted := endpoint.Wanted{InstanceID: ids.ID(query.Get("instance")), Endpoint: query.Get("endpoint"),
		MemberID: ids.ID(query.Get("member"))}
	to, err := r.Endpoints.Find(ctx, wanted)
	if err != nil {
		denial.Note(ctx, r.Endpoints.DB, err, endpoint.ConnectAction, query.Get("instance"))
		return err
	}
	if err := r.Endpoints.Note(ctx, to, "connection"); err != nil {
		return err
	}
	there, err := r.Dial(ctx, to)
	if err != nil {
		return err
	}
	return r.join(ctx, w, there, "connection "+string(to.Instance.ID)+" "+to.Endpoint.Name,
		func(ctx context.Context) error {
			_, err := r.Endpoints.Find(ctx, wanted)
			return err
		})
}

// session connects to the SSH server of a member; it returns an error only where nothing has been answered yet.
func (r *Relay) session(ctx context.Context, w http.ResponseWriter, member ids.ID, reason string) error {
	to, err := r.Endpoints.Session(ctx, member, reason)
	if err != nil {
		return err
	}
	there, err := r.Open(ctx, to.TenantID, to.NodeID, to.Open)
	if err != nil {
		return err
	}
	err = tunnel.CertifyHost(ctx, there, func(key string) (string, error) { return r.Endpoints.HostKey(to, key) })
	if err != nil {
		_ = there.Close()
		return err
	}
	return r.join(ctx, w, there, "ssh "+string(member), func(ctx context.Context) error {
		return r.Endpoints.MayCommand(ctx, member)
	})
}

// Commands serves tunnel.ExecPath: a command in a member that somebody works with, from a program or, by WebSocket,
// from the console. It ends within five seconds of the right's end.
func (r *Relay) Commands(authenticate Authenticate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if websocket.IsWebSocketUpgrade(request) {
			r.browser(w, request, authenticate)
			return
		}
		ctx, err := begin(w, request, authenticate)
		if err == nil {
			err = r.command(ctx, w, request)
		}
		if err != nil {
			denial.Answer(ctx, w, err, 0)
		}
	})
}

// command returns an error only where nothing has been answered yet.
func (r *Relay) command(ctx context.Context, w http.ResponseWriter, request *http.Request) error {
	query := request.URL.Query()
	size := func(name string) uint16 {
		number, _ := strconv.ParseUint(query.Get(name), 10, 16)
		return uint16(number)
	}
	in := endpoint.CommandInput{MemberID: ids.ID(query.Get("member")), Reason: query.Get("reason"),
		Exec: tunnel.Exec{Command: query["command"], User: query.Get("user"), TTY: query.Get("tty") == "1",
			Rows: size("rows"), Cols: size("cols")}}
	node, tenant, open, err := r.Endpoints.Command(ctx, in)
	if err != nil {
		return err
	}
	there, err := r.Open(ctx, tenant, node, open)
	if err != nil {
		return err
	}
	return r.join(ctx, w, there, "command "+string(in.MemberID), func(ctx context.Context) error {
		return r.Endpoints.MayCommand(ctx, in.MemberID)
	})
}

// join takes the request's connection over and passes bytes until either side ends, or the right does.
func (r *Relay) join(ctx context.Context, w http.ResponseWriter, there net.Conn, what string,
	still func(context.Context) error) error {
	here, err := tunnel.Accept(w)
	if err != nil {
		_ = there.Close()
		r.Log.WarnContext(ctx, "a caller's connection broke as it began", "error", err)
		return nil
	}
	forget := r.Sentinel.Watch(ctx, what, still, func(error) { _, _ = here.Close(), there.Close() })
	defer forget()
	tunnel.Join(here, there)
	return nil
}

// begin reads the caller of a request for an upgrade.
func begin(w http.ResponseWriter, r *http.Request, authenticate Authenticate) (context.Context, error) {
	id := transport.RequestCorrelationID(r)
	w.Header().Set(transport.CorrelationHeader, id)
	ctx := transport.WithCorrelationID(r.Context(), id)
	if !tunnel.Wanted(r) {
		return ctx, fault.New(fault.RequestInvalid, "this address needs an upgrade to %s", tunnel.Protocol)
	}
	text, ok := transport.Bearer(r.Header.Get("Authorization"))
	if !ok {
		return ctx, fault.New(fault.Unauthenticated, "the Authorization header must be: Bearer <token>")
	}
	entered, err := authenticate(ctx, transport.Credential{Raw: text, Source: transport.SourceBearer}, r)
	if err != nil {
		return ctx, err
	}
	return entered, nil
}

// accept takes a connection over as a session.
func accept(w http.ResponseWriter, opener bool) (*tunnel.Session, error) {
	conn, err := tunnel.Accept(w)
	if err != nil {
		return nil, err
	}
	session, err := tunnel.NewSession(conn, opener)
	if err != nil {
		_ = conn.Close()
	}
	return session, err
}
