// Package standin is the platform's end of the adapter contract for the conformance suite: the key
// set, request tokens good and bad, and as much of the public API as an adapter uses to act. Node
// tasks are really carried out, each is written down, and each can be held back, failed or lost
// ([Rule]), so that the suite catches an adapter in the middle of its work.
package standin

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

const (
	// maxTasks bounds the node tasks of one run of the suite.
	maxTasks = 100_000
	// maxGrants bounds the tokens of one run.
	maxGrants = 20_000
	// maxReports bounds the kept reports of adapters; older ones are dropped.
	maxReports = 10_000
	// readTimeout bounds the reading of one request.
	readTimeout = 30 * time.Second
)

// Nodes carries node tasks out. [sandbox.Nodes] is one.
type Nodes interface {
	// SealingKey is the public key for sealed values, base64.
	SealingKey() string
	// Do carries a task out; ending ctx cancels it.
	Do(ctx context.Context, task sandbox.Task) sandbox.Outcome
	// Residue returns what is left of a member.
	Residue(memberID string) (adapter.Residue, error)
	// Wipe deletes all of a member behind the adapter's back.
	Wipe(memberID string) error
}

// Platform is the platform's end. Start it, and Stop it when the suite is over.
type Platform struct {
	// URL is the issuer of request tokens, and the address of key set and public API.
	URL string

	nodes   Nodes
	private ed25519.PrivateKey
	kid     string // of the one published key; another in each run, since adapters cache keys by id
	keys    []byte
	signer  *adapter.Signer
	server  *http.Server

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	grants  map[string]*Grant
	tasks   map[string]*task
	ledger  []*task
	rules   []*Rule
	answers map[string]Answer
	reports []json.RawMessage
}

// Start listens on address ("127.0.0.1:0" for any port) and serves until Stop.
func Start(address string, nodes Nodes) (*Platform, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("stand-in platform: %w", err)
	}
	kid := "conformance-" + rand.Text()
	keys, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: public, KeyID: kid, Algorithm: "EdDSA", Use: "sig"}},
	})
	if err != nil {
		return nil, fmt.Errorf("stand-in platform: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("stand-in platform: %w", err)
	}
	p := &Platform{
		URL: "http://" + listener.Addr().String(), nodes: nodes, private: private, kid: kid, keys: keys,
		grants: map[string]*Grant{}, tasks: map[string]*task{}, answers: map[string]Answer{},
	}
	if p.signer, err = adapter.NewSigner(p.URL, kid, private); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout}
	p.work.Go(func() { _ = p.server.Serve(listener) })
	return p, nil
}

func (p *Platform) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.keys)
	})
	mux.HandleFunc("POST /graphql", p.graphql)
	return mux
}

// Answer is what a field of the public API answers for its input.
type Answer func(input json.RawMessage) (map[string]any, error)

// Answers serves one more field of the public API, such as "issueSshHostCertificate", for a test that needs it.
func (p *Platform) Answers(field string, with Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[field] = with
}

// Stop ends the server and every task under way. Safe to call twice.
func (p *Platform) Stop() {
	p.stop()
	_ = p.server.Close()
	p.work.Wait()
}

// Grant is one token of the public API and its rights: to run tasks in the members of one instance.
type Grant struct {
	platform  *Platform
	token     string
	instance  string
	operation string
	members   map[string]bool
	open      bool
	revoked   bool
}

// Grant returns a token for an instance, an operation (or call) and the members it may act in.
func (p *Platform) Grant(instance, operation string, members []adapter.Member) (*Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.grants) >= maxGrants {
		return nil, fmt.Errorf("stand-in platform: more than %d tokens", maxGrants)
	}
	g := &Grant{
		platform: p, token: "gpu_op_" + rand.Text(), instance: instance, operation: operation,
		members: map[string]bool{},
	}
	for _, member := range members {
		g.members[member.ID] = true
	}
	p.grants[g.token] = g
	return g, nil
}

// Open adds a token of the caller's choice that is for every member and operation, and returns its grant. Tests that
// give all their dispatches one token use it; the suite does not.
func (p *Platform) Open(token string) *Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &Grant{platform: p, token: token, open: true}
	p.grants[token] = g
	return g
}

// Token returns the bearer token.
func (g *Grant) Token() string { return g.token }

// Access returns the part of a dispatch that carries the token.
func (g *Grant) Access() adapter.Platform {
	return adapter.Platform{
		GraphQLURL: g.platform.URL + "/graphql", Token: g.token,
		TokenExpiresAt: time.Now().Add(time.Hour).UTC(),
	}
}

// Revoke invalidates the token from now on.
func (g *Grant) Revoke() {
	g.platform.mu.Lock()
	defer g.platform.mu.Unlock()
	g.revoked = true
}

// find returns the grant of a token; nil when the token is unknown or revoked.
func (p *Platform) find(token string) *Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.grants[token]; g != nil && !g.revoked {
		return g
	}
	return nil
}

// renew returns a second token with the same rights; an open grant keeps its only one.
func (p *Platform) renew(of *Grant) (*Grant, error) {
	if of.open {
		return of, nil
	}
	var members []adapter.Member
	for id := range of.members {
		members = append(members, adapter.Member{ID: id})
	}
	return p.Grant(of.instance, of.operation, members)
}

// Tokens returns every token that was issued so far: none of them may be seen in an answer.
func (p *Platform) Tokens() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens := make([]string, 0, len(p.grants))
	for token := range p.grants {
		tokens = append(tokens, token)
	}
	return tokens
}

// Reports returns the newest reports of operations under way, as the adapter sent them.
func (p *Platform) Reports() []json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]json.RawMessage{}, p.reports...)
}

// Residue returns what is left of a member on its node.
func (p *Platform) Residue(memberID string) (adapter.Residue, error) {
	return p.nodes.Residue(memberID)
}

// Wipe deletes what a member has on its node, as when the node is lost.
func (p *Platform) Wipe(memberID string) error { return p.nodes.Wipe(memberID) }

// Carry carries out a task of the caller's own, which no adapter has requested.
func (p *Platform) Carry(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	return p.nodes.Do(ctx, task)
}

// SealingKey returns the node's public key, base64.
func (p *Platform) SealingKey() string { return p.nodes.SealingKey() }
