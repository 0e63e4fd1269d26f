// Package automation lets an adapter act without a request of the platform: as a service account of its own, and for
// an instance as the service account that the instance's project chose for it.
//
//	account, err := automation.Open("https://gpu.example.com", "/run/secrets/adapter.key")
//	own, err := account.Own()                 // as the adapter: reads the catalog, publishes a release
//	demo, err := account.For("ins_…")         // as the account that the instance names, on that instance alone
//	_, err = gql.AddMembers(ctx, demo, gql.AddMembersInput{…})
//
// The platform decides what either may do; see docs/guides/service-accounts.md.
package automation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// maxKey bounds the file, in bytes.
	maxKey = 4 << 10
	// early is how long before its end a token is replaced.
	early = 2 * time.Minute
	// maxHeld bounds the tokens that are kept; beyond it all are forgotten, and requested again when they are needed.
	maxHeld = 4_096
)

// Account is the adapter's own service account. It is safe for concurrent use.
type Account struct {
	platform, file string
	now            func() time.Time

	mu   sync.Mutex
	held map[string]gql.IssueOperatorTokenIssueOperatorTokenOperatorTokenPayload
}

// Open returns the account whose key is in the file, on the platform at the URL. The file is read now, to name what is
// wrong with it, and again for each request: a rotated key needs no restart.
func Open(platform, file string) (*Account, error) {
	a := &Account{platform: platform, file: file, now: time.Now,
		held: make(map[string]gql.IssueOperatorTokenIssueOperatorTokenOperatorTokenPayload)}
	if _, err := a.key(context.Background()); err != nil {
		return nil, err
	}
	_, err := a.Own()
	return a, err
}

// Own returns a client that acts as the adapter's own account.
func (a *Account) Own() (*client.Client, error) {
	return client.New(a.platform, client.Options{TokenSource: a.key})
}

// For returns a client that acts for an instance, as the account that its project chose. Its calls are refused with
// FAILED_PRECONDITION while none is chosen, and with NOT_FOUND for an instance that another adapter runs: see Unchosen.
func (a *Account) For(instanceID string) (*client.Client, error) {
	return client.New(a.platform, client.Options{TokenSource: func(ctx context.Context) (string, error) {
		return a.token(ctx, instanceID)
	}})
}

// Unchosen reports whether a call for an instance was refused because its project has chosen no account for it: the
// adapter then leaves the instance to people.
func Unchosen(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && (refused.Code == client.CodeFailedPrecondition ||
		refused.Code == client.CodeNotFound)
}

// Forget drops the token of an instance, after a call with it was refused: another account may be chosen meanwhile.
func (a *Account) Forget(instanceID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.held, instanceID)
}

// key reads the file.
func (a *Account) key(context.Context) (string, error) {
	file, err := os.Open(a.file)
	if err != nil {
		return "", fmt.Errorf("service account: %w", err)
	}
	defer func() { _ = file.Close() }()
	text := make([]byte, maxKey+1)
	n, err := file.Read(text)
	if err != nil || n > maxKey {
		return "", fmt.Errorf("service account: %s is not a file with a key", a.file)
	}
	key := strings.TrimSpace(string(text[:n]))
	if key == "" || strings.ContainsAny(key, " \r\n\t") {
		return "", fmt.Errorf("service account: %s is not a file with one key", a.file)
	}
	return key, nil
}

// token returns the instance's token, a new one where it expires soon. Callers at the same time may request it twice,
// which costs one more call and nothing else.
func (a *Account) token(ctx context.Context, instanceID string) (string, error) {
	a.mu.Lock()
	held, ok := a.held[instanceID]
	a.mu.Unlock()
	if ok && a.now().Before(held.ExpiresAt.Add(-early)) {
		return held.Token, nil
	}
	own, err := a.Own()
	if err != nil {
		return "", err
	}
	answer, err := gql.IssueOperatorToken(ctx, own, instanceID)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) >= maxHeld {
		clear(a.held)
	}
	a.held[instanceID] = answer.IssueOperatorToken
	return answer.IssueOperatorToken.Token, nil
}
