package dataset

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
)

// Readers are logged-in people, some of every tenant, so that each instance has one who may read it.
type Readers struct {
	size   Size
	tokens [][]string // by tenant
}

// Readers logs n people in, who are different people as long as there are as many. n is at least the number of tenants.
func (s *Set) Readers(ctx context.Context, n int) (*Readers, error) {
	if n < s.Size.Tenants {
		return nil, fmt.Errorf("%d callers: at least one for each of the %d tenants is needed", n, s.Size.Tenants)
	}
	readers := &Readers{size: s.Size, tokens: make([][]string, s.Size.Tenants)}
	for i := range n {
		person := i % s.Size.people()
		text, secret := token.Mint(token.Session)
		if err := s.sessionOf(ctx, secret, ID(ids.User, person)); err != nil {
			return nil, err
		}
		tenant := person % s.Size.Tenants
		readers.tokens[tenant] = append(readers.tokens[tenant], text)
	}
	return readers, nil
}

// Pick returns an instance, each as likely as any other, and one of the callers who may read it.
func (r *Readers) Pick() (ids.ID, Caller) {
	i := rand.IntN(r.size.Instances)
	number := i % r.size.projects()
	tokens := r.tokens[number/r.size.Projects]
	return Instance(i), Caller{Token: tokens[rand.IntN(len(tokens))], Number: number}
}
