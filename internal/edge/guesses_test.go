package edge

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func guessesAt(c *clock) *Guesses { g := NewGuesses(); g.now = c.now; return g }

// exhaust makes an address fail with different secrets until it must wait.
func exhaust(t *testing.T, g *Guesses, address, credential string) {
	t.Helper()
	for i := range freeGuesses + 1 {
		attempt := Attempt{Address: address, Credential: credential,
			Secret: fmt.Sprint(address, " ", credential, " ", i)}
		require.NoError(t, g.Check(attempt))
		g.Failed(attempt)
	}
}

func TestWrongSecretsOfAnAddressDoubleItsWait(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := guessesAt(c)
	exhaust(t, g, "192.0.2.1", "")
	next := Attempt{Address: "192.0.2.1", Secret: "next"}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		require.Equal(t, want*time.Second, waits(t, g.Check(next)))
		c.advance(want * time.Second)
		require.NoError(t, g.Check(next))
		g.Failed(Attempt{Address: "192.0.2.1", Secret: fmt.Sprint("again ", i)})
	}
	require.NoError(t, g.Check(Attempt{Address: "192.0.2.2", Secret: "x"}), "another address")
}

func TestAnAddressThatWasQuietBeginsAnew(t *testing.T) {
	t.Parallel()
	c := newClock()
	g := guessesAt(c)
	exhaust(t, g, "192.0.2.1", "")
	c.advance(firstPenalty + guessRefill*freeGuesses)
	exhaust(t, g, "192.0.2.1", "fresh")
	require.Equal(t, firstPenalty, waits(t, g.Check(Attempt{Address: "192.0.2.1", Secret: "z"})))
}

func TestTheRightSecretIsNotKeptOutByTheGuessesOfItsNeighbours(t *testing.T) {
	t.Parallel()
	g := guessesAt(newClock())
	good := Attempt{Address: "192.0.2.1", Credential: "key_1", Secret: "right"}
	g.Outcome(good, true)
	exhaust(t, g, "192.0.2.1", "key_1")
	require.NoError(t, g.Check(good))
	require.Error(t, g.Check(Attempt{Address: "192.0.2.1", Credential: "key_1", Secret: "wrong"}))
	g.Outcome(good, false) // it was revoked
	require.Error(t, g.Check(good), "and then it is a guess like any other")
}

func TestGuessesAtACredentialFromManyAddressesCountForItButNotAgainstItsHolder(t *testing.T) {
	t.Parallel()
	g := guessesAt(newClock())
	for i := range freeGuesses + 1 {
		g.Failed(Attempt{Address: fmt.Sprintf("192.0.2.%d", i), Credential: "key_1", Secret: fmt.Sprint(i)})
	}
	require.Error(t, g.Check(Attempt{Address: "192.0.2.3", Credential: "key_1", Secret: "another"}),
		"it guessed before")
	require.NoError(t, g.Check(Attempt{Address: "192.0.2.3", Credential: "key_2", Secret: "another"}),
		"of another credential")
	require.NoError(t, g.Check(Attempt{Address: "198.51.100.1", Credential: "key_1", Secret: "right"}),
		"from where nobody guessed")
}

func TestOneWrongSecretShownAgainAndAgainCountsOnce(t *testing.T) {
	t.Parallel()
	g := guessesAt(newClock())
	for range 1000 {
		attempt := Attempt{Address: "192.0.2.1", Credential: "ses_1", Secret: "forgotten"}
		require.NoError(t, g.Check(attempt))
		g.Failed(attempt)
	}
	require.NoError(t, g.Check(Attempt{Address: "192.0.2.1", Secret: "other"}))
}

func TestANetworkGuessesAsOne(t *testing.T) {
	t.Parallel()
	g := guessesAt(newClock())
	for i := range freeGuesses + 1 {
		g.Failed(Attempt{Address: fmt.Sprintf("2001:db8::%x", i+1), Secret: fmt.Sprint(i)})
	}
	require.Error(t, g.Check(Attempt{Address: "2001:db8::ffff", Secret: "x"}))
	require.NoError(t, g.Check(Attempt{Address: "2001:db8:0:1::1", Secret: "x"}))
}
