package pgtest

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Proxy is between a client and the server, and can stop forwarding as a network does that loses every packet: the
// client's bytes are acknowledged and never answered, and no connection is closed.
type Proxy struct {
	listener net.Listener
	target   *pgconn.Config

	mu    sync.Mutex
	pairs []*pair
	deaf  bool // new connections are swallowed too
}

// pair is one connection through the proxy.
type pair struct {
	client, server net.Conn
	swallowed      atomic.Bool
}

// NewProxy forwards to the database at dsn until the test ends.
func NewProxy(t testing.TB, dsn string) *Proxy {
	t.Helper()
	target, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: listener, target: &target.Config}
	var running sync.WaitGroup
	running.Go(func() { p.accept(&running) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		running.Wait()
	})
	return p
}

// DSN connects to the same database, as the same role, through the proxy.
func (p *Proxy) DSN() string {
	address := url.URL{Scheme: "postgres", User: url.User(p.target.User), Host: p.listener.Addr().String(),
		Path: "/" + p.target.Database, RawQuery: "sslmode=disable"}
	return address.String()
}

// Swallow loses, from now on, every byte of the connections there are; new ones work.
func (p *Proxy) Swallow() { p.swallow(false) }

// SwallowAll is Swallow for new connections too.
func (p *Proxy) SwallowAll() { p.swallow(true) }

func (p *Proxy) swallow(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
	for _, one := range p.pairs {
		one.swallowed.Store(true)
	}
}

// Cut closes every connection; new ones work again.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.pairs {
		_ = one.client.Close()
		_ = one.server.Close()
	}
	p.pairs, p.deaf = nil, false
}

func (p *Proxy) accept(running *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		network, address := pgconn.NetworkAddress(p.target.Host, p.target.Port)
		server, err := net.Dial(network, address)
		if err != nil {
			_ = client.Close()
			continue
		}
		one := &pair{client: client, server: server}
		p.mu.Lock()
		one.swallowed.Store(p.deaf)
		p.pairs = append(p.pairs, one)
		p.mu.Unlock()
		running.Go(func() { one.copy(server, client) })
		running.Go(func() { one.copy(client, server) })
	}
}

// copy forwards until one side closes. The close of one whose bytes are lost is lost too: the server keeps what the
// client held there until its own time-outs.
func (o *pair) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !o.swallowed.Load() {
			if n > 0 {
				if _, failed := to.Write(buffer[:n]); failed != nil {
					err = failed
				}
			}
			if err != nil {
				_ = to.Close()
			}
		}
		if err != nil {
			return
		}
	}
}
