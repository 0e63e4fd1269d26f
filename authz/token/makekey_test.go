package token

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A new key takes the first name that is free of the next hundred seconds, and none beyond.
func TestAKeyTakesTheNextSecondsNameThatIsFree(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(second int) string {
		return filepath.Join(dir, now.Add(time.Duration(second)*time.Second).Format(nameLayout)+".pem")
	}
	for second := range maxKeyFiles - 1 {
		require.NoError(t, os.WriteFile(at(second), nil, 0o600))
	}
	name, err := makeKey(dir, now)
	require.NoError(t, err)
	require.Equal(t, at(maxKeyFiles-1), name)
	_, err = readKey(name)
	require.NoError(t, err)
	name, err = makeKey(dir, now)
	require.EqualError(t, err, "signing keys: "+dir+" has too many")
	require.Empty(t, name)
	require.NoFileExists(t, at(maxKeyFiles))
}
