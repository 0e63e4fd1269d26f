package digest

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestADigestIsTheSHA256OfTheBytes(t *testing.T) {
	t.Parallel()
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-4's example
	assert.Equal(t, want, Of([]byte("abc")))
	hasher := sha256.New()
	_, _ = hasher.Write([]byte("abc"))
	assert.Equal(t, want, Sum(hasher))
	assert.True(t, Valid(want))
	for _, bad := range []string{"", "abc", "sha256:", want[7:], strings.ToUpper(want),
		"sha256:" + strings.ToUpper(want[7:]), want + "0", want[:70], want + "\n", "sha512:" + want[7:],
		"sha256:" + strings.Repeat("g", 64)} {
		assert.False(t, Valid(bad), bad)
	}
}
