package tx

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// What others are shown must have been read by the rights that were proved: a binding may end between proof and read.
func TestAReadByOtherRightsThanProvedIsNotProved(t *testing.T) {
	t.Parallel()
	tenant := "ten_a"
	of := func(bindings string) *entered { return &entered{tenant: &tenant, bindings: []byte(bindings)} }
	sum := sha256.Sum256([]byte(`ten_a [{"role": "a"}]`))
	proof := Proof{rights: "7 1.5 " + hex.EncodeToString(sum[:]), versions: "1"}
	require.EqualValues(t, 7, proof.anchor())
	for name, one := range map[string]struct {
		reads  []*entered
		proved bool
	}{
		"none":      {nil, false},
		"the same":  {[]*entered{of(`[{"role": "a"}]`), of(`[{"role": "a"}]`)}, true},
		"others":    {[]*entered{of(`[{"role": "b"}]`)}, false},
		"then less": {[]*entered{of(`[{"role": "a"}]`), of(`[]`)}, false},
		"then more": {[]*entered{of(`[]`), of(`[{"role": "a"}]`)}, false},
	} {
		proving := &Proving{proof: proof}
		for _, read := range one.reads {
			proving.read(read)
		}
		_, proved := proving.Proved()
		require.Equal(t, one.proved, proved, name)
	}
	_, proved := (&Proving{}).Proved()
	require.False(t, proved)
	require.Zero(t, Proof{rights: "nonsense"}.anchor())
}
