package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCellsCalculateAndReachNothing(t *testing.T) {
	t.Parallel()
	n := newNotes([]string{"GREETING=Hello"})
	for _, one := range []struct{ code, out, wrong string }{
		{code: "6 * 7", out: "42"},
		{code: "rows = 2\n# a remark\ncolumns := 3\nrows * columns", out: "6"},
		{code: "rows == 2", out: "true"},
		{code: `GREETING + ", all"`, out: "Hello, all"},
		{code: "rows = rows + 1", out: "3"},
		{code: "", out: ""},
		{code: "1 / 0", wrong: "line 1: invalid operation: division by zero"},
		{code: "1\nelsewhere", wrong: "line 2: undefined: elsewhere"},
		{code: `os.ReadFile("/etc/passwd")`, wrong: "line 1: undefined: os"},
		{code: "func() {}", wrong: "this notebook supports only numbers"},
		{code: "1 << 1000000000", wrong: "shift count"},
		{code: strings.Repeat("1\n", 101) + "1", wrong: "at most 100 lines"},
	} {
		out, err := n.run(one.code)
		if one.wrong != "" {
			require.ErrorContains(t, err, one.wrong, one.code)
			continue
		}
		require.NoError(t, err, one.code)
		require.Equal(t, one.out, out, one.code)
	}
}

func TestANotebookIsKeptInItsFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ask := func(b book, method, cell string) (int, string) {
		w := httptest.NewRecorder()
		routes(b).ServeHTTP(w, httptest.NewRequest(method, "/notes", strings.NewReader(cell)))
		return w.Code, w.Body.String()
	}
	code, answer := ask(book{folder}, http.MethodPost, "rows = 6")
	require.Equal(t, http.StatusOK, code, answer)
	code, answer = ask(book{folder}, http.MethodPost, "rows * 7") // another process: nothing is held but the folder
	require.Equal(t, http.StatusOK, code, answer)
	require.JSONEq(t, `{"cell":2,"out":"42"}`, answer)
	number, err := book{folder}.put(1, "rows = 7")
	require.NoError(t, err)
	require.Equal(t, 1, number)
	_, answer = ask(book{folder}, http.MethodGet, "")
	require.JSONEq(t, `{"cells":[{"cell":1,"code":"rows = 7","out":"7"},{"cell":2,"code":"rows * 7","out":"49"}]}`,
		answer)

	code, answer = ask(book{}, http.MethodPost, "1")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, answer, "not kept: this notebook has no folder")
	_, err = book{folder}.put(maxCells+1, "1")
	require.ErrorContains(t, err, "at most 200 cells")
	code, answer = ask(book{folder + "/gone"}, http.MethodPost, "1")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, answer, "was not kept")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2, "no half-written file is left")
}
