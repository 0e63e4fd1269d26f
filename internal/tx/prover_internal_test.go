package tx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who has given up is not proved for: after a time without a database those who still wait come first.
func TestNothingIsProvedForWhoHasGivenUp(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	p := &prover{leading: 1}
	var there []*claim
	for range mostProofs + 3 {
		one := &claim{ctx: t.Context()}
		there = append(there, one)
		p.waiting = append(p.waiting, &claim{ctx: gone}, one)
	}
	require.Equal(t, there[:mostProofs], p.next())
	require.Equal(t, there[mostProofs:], p.next())
	require.Equal(t, 1, p.leading)
	require.Nil(t, p.next())
	require.Empty(t, p.waiting)
	require.Zero(t, p.leading, "who comes next leads")
}
