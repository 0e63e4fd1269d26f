package mutation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixture is a package whose mutants are known.
func fixture() Config {
	return Config{Dir: ".", Package: "./testdata/fixture", Parallel: 2, Timeout: 5 * time.Second}
}

// spelled are mutants as they are printed, without the file.
func spelled(mutants []*Mutant) (lines []string) {
	for _, m := range mutants {
		lines = append(lines, strings.TrimPrefix(m.String(), m.File+":"))
	}
	return lines
}

func TestAMutantIsKilledWhereATestLooksAndSurvivesWhereNoneDoes(t *testing.T) {
	t.Parallel()
	c := fixture()
	c.Equivalents = Equivalents{
		"testdata/fixture Large: n > 10 → n >= 10": "as if nobody could tell",
		"testdata/fixture Gone: a < b → a <= b":    "it is not there any more",
		"elsewhere Gone: a < b → a <= b":           "of another package",
	}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{
		"11: Limit: 2 * time.Minute → 2 * time.Minute + 60000000000 (constant)",
		"11: Limit: 2 * time.Minute → 2 * time.Minute - 60000000000 (constant)",
		`16: table: 1: 7 → 1: (7 + 1) (constant)`, `16: table: 1: 7 → 1: (7 - 1) (constant)`,
		"19: Short: d <= Limit → d < Limit (boundary)",
		`26: Named: if first == "" && last == "" → if !(first == "" && last == "") (branch)`,
		`26: Named: first == "" && last == "" → first == "" || last == "" (logical)`,
		`26: Named: first == "" → first != "" (equality)`, `26: Named: last == "" → last != "" (equality)`,
		`27: Named: return "", errEmpty → left out (return)`, "27: Named: return errEmpty → return nil (error)",
		`34: Parsed: text == "" → text != "" (equality)`, "35: Parsed: return 0, errEmpty → left out (return)",
		"35: Parsed: return errEmpty → return nil (error)",
		"43: Size: if n > 100 || n < -100 → if !(n > 100 || n < -100) (branch)",
		"43: Size: n > 100 || n < -100 → n > 100 && n < -100 (logical)",
		"51: Count: n > 0 → n >= 0 (boundary)", "51: Count: n > 0 → n > (0 + 1) (constant)",
		"51: Count: n > 0 → n > (0 - 1) (constant)", "52: Count: n -= 1 → n -= (1 + 1) (constant)",
		"52: Count: n -= 1 → n -= (1 - 1) (constant)", "55: Count: table[1] → table[(1 + 1)] (constant)",
		"55: Count: table[1] → table[(1 - 1)] (constant)",
		"55: Count: steps + table[1] - 7 → steps + table[1] - (7 + 1) (constant)",
		"55: Count: steps + table[1] - 7 → steps + table[1] - (7 - 1) (constant)",
	}, spelled(r.Killed))
	require.Equal(t, []string{
		"22: Large: n > 10 → n > (10 + 1) (constant)", "22: Large: n > 10 → n > (10 - 1) (constant)",
		"43: Size: n > 100 → n >= 100 (boundary)", "43: Size: n > 100 → n > (100 + 1) (constant)",
		"43: Size: n > 100 → n > (100 - 1) (constant)",
	}, spelled(r.Survived))
	require.Equal(t, []string{
		"43: Size: n < -100 → n <= -100 (boundary)", "43: Size: -100 → -(100 + 1) (constant)",
		"43: Size: -100 → -(100 - 1) (constant)", "59: Alone: n == 4 → n != 4 (equality)",
		"59: Alone: n == 4 → n == (4 + 1) (constant)", "59: Alone: n == 4 → n == (4 - 1) (constant)",
	}, spelled(r.Unreached))
	require.Equal(t, []string{"22: Large: n > 10 → n >= 10 (boundary)"}, spelled(r.Equivalent))
	require.Equal(t, []string{"testdata/fixture Gone: a < b → a <= b"}, r.Stale)
	require.Equal(t, []int{37, 0, 83, 69}, []int{r.Mutants, r.NotCompiled, r.OfReached(), r.OfAll()})
	require.NotZero(t, r.Late, "one of them never ends")
}

func TestTestsThatFailWithoutAMutantAreAnError(t *testing.T) {
	t.Parallel()
	c := fixture()
	c.TestArgs, c.Sample = []string{"-test.nonsense"}, 1
	_, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "the tests fail without a mutant: exit status 2\nflag provided but not defined")
	c.Package = "../..."
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "../... is more than one package")
}

func TestAMutantThatDoesNotCompileIsLeftOutWithItsLine(t *testing.T) {
	t.Parallel()
	s, err := load(t.Context(), ".", "./testdata/fixture")
	require.NoError(t, err)
	all := find(s)
	broken := *all[4] // the comparison in Short
	broken.edits = append(broken.edits[:0:0], broken.edits[0])
	broken.edits[0].text = "nonsense * "
	mutants := append(append(all[:4:4], &broken), all[5:]...)
	compiled, programs, err := build(t.Context(), fixture(), s, mutants, t.TempDir())
	require.NoError(t, err)
	require.Len(t, programs, 1)
	require.Equal(t, append(all[2:4:4], all[5:]...), compiled, "the constant that is used on its line goes with it")
}

func TestASampleCanBeDrawnAgain(t *testing.T) {
	t.Parallel()
	s, err := load(t.Context(), ".", "./testdata/fixture")
	require.NoError(t, err)
	all := find(s)
	require.Equal(t, all, sample(all, 0, 1))
	require.Equal(t, all, sample(all, len(all), 1))
	drawn := sample(all, 10, 1)
	require.Len(t, drawn, 10)
	require.Equal(t, drawn, sample(find(s), 10, 1))
	require.NotEqual(t, drawn, sample(all, 10, 2))
	for i := 1; i < len(drawn); i++ {
		require.Less(t, drawn[i-1].Number, drawn[i].Number)
	}
}

func TestEachEquivalentHasAPlaceAndAReason(t *testing.T) {
	t.Parallel()
	found, err := ParseEquivalents("# a comment\n\ndomain/ids A.B: a # b → c  # it cannot be told\n")
	require.NoError(t, err)
	require.Equal(t, Equivalents{"domain/ids A.B: a # b → c": "it cannot be told"}, found)
	require.True(t, found.has("./domain/ids", &Mutant{Func: "A.B", From: "a # b", To: "c"}))
	require.False(t, found.has("./domain/ids", &Mutant{Func: "A.B", From: "a # b", To: "d"}))
	for _, wrong := range []string{"domain/ids A: a → b", "domain/ids A: a → b  # ", "domain/ids  # why"} {
		_, err := ParseEquivalents("\n" + wrong)
		require.ErrorContains(t, err, "line 2: write:", wrong)
	}
}
