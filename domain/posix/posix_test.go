package posix_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gpuaas/app-platform/domain/posix"
)

// valid is what the database, the contract and POSIX take.
var valid = regexp.MustCompile(`\A[a-z]([a-z0-9_-]{0,29}[a-z0-9_])?\z`)

func TestWhatPeopleAreCalledBecomesAName(t *testing.T) {
	t.Parallel()
	for called, name := range map[string]string{
		"ada": "ada", "Ada.Lovelace": "ada-lovelace", "Zoë Müller": "zoe-muller", "ci_bot": "ci-bot", "7of9": "u7of9",
		"-rf /": "rf", "../../etc/passwd": "etc-passwd", "root:x:0:0": "root-x-0-0", "a\x00b\nc": "a-b-c",
		"$(reboot)": "reboot", "": "user", "---": "user", "李雷": "user", "Åse": "ase", "ﬁne": "fine", "K": "k",
		strings.Repeat("x", 400): strings.Repeat("x", 31), strings.Repeat("9", 400): "u" + strings.Repeat("9", 30),
		strings.Repeat("x", 30) + ".y": strings.Repeat("x", 30),
	} {
		require.Equal(t, name, posix.Name(called), "%q", called)
	}
	require.Equal(t, "lei", posix.Name("李", "Lei"), "the first that a name can be made of")
	require.Equal(t, "user", posix.Name())
}

func TestWhateverSomebodyIsCalledItIsAName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := posix.Name(rapid.String().Draw(t, "called"), rapid.String().Draw(t, "shown"))
		if !valid.MatchString(name) {
			t.Fatalf("%q is no name", name)
		}
	})
}

func TestReservedNamesAreNamesThatANumberMakesFree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"root", "nobody", "daemon", "mysql", "sudo", "wheel"} {
		require.True(t, posix.IsReserved(name), name)
	}
	require.False(t, posix.IsReserved("ada"))
	require.True(t, slices.IsSorted(posix.Reserved()))
	for _, name := range posix.Reserved() {
		require.Regexp(t, `[^0-9]$`, name, "a number at its end makes it another name, that is not reserved")
	}
}
