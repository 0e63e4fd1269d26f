package web

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/compress"
)

// firstLoad and firstPage are how many bytes may be sent, compressed, before the console's frame is drawn, and before a
// page that people begin with is.
const firstLoad, firstPage = 200_000, 210_000

// chunk is an entry of the build's manifest: a file, and what has to be there with it.
type chunk struct {
	File    string   `json:"file"`
	Imports []string `json:"imports"`
	CSS     []string `json:"css"`
}

// manifest reads what the build wrote about its chunks; a test without a build is skipped.
func manifest(t *testing.T) map[string]chunk {
	t.Helper()
	text, err := fs.ReadFile(built(), ".manifest.json")
	if err != nil {
		t.Skip("the console is not built")
	}
	chunks := map[string]chunk{}
	require.NoError(t, json.Unmarshal(text, &chunks))
	return chunks
}

// load adds the files that a chunk needs before it runs.
func load(t *testing.T, chunks map[string]chunk, name string, files map[string]bool) {
	t.Helper()
	found, ok := chunks[name]
	require.True(t, ok, "%s has no chunk of its own", name)
	if files[found.File] {
		return
	}
	files[found.File] = true
	for _, sheet := range found.CSS {
		files[sheet] = true
	}
	for _, needed := range found.Imports {
		load(t, chunks, needed, files)
	}
}

// sent returns how many bytes the handler sends for the files to a browser.
func sent(t *testing.T, files map[string]bool) int {
	t.Helper()
	site, sum := newSite(built(), "index.html", consolePolicy), 0
	for name := range files {
		found, ok := site.files[name]
		require.True(t, ok, "%s is not served", name)
		size := len(found.body)
		if coded := found.coded(compress.Gzip); coded != nil {
			size = len(coded)
		}
		sum += size
	}
	return sum
}

// TestTheFirstLoadIsSmall adds up what the page names and what that imports, and the pages that people begin with.
func TestTheFirstLoadIsSmall(t *testing.T) {
	t.Parallel()
	chunks := manifest(t)
	page, err := fs.ReadFile(built(), "index.html")
	require.NoError(t, err)
	for begin, limit := range map[string]int{
		"index.html": firstLoad, "src/login/LoginPage.tsx": firstPage, "src/workloads/WorkloadsPage.tsx": firstPage,
	} {
		files := map[string]bool{}
		for _, named := range regexp.MustCompile(`(?:src|href)="/([^"]+\.(?:js|css))"`).FindAllSubmatch(page, -1) {
			files[string(named[1])] = true
		}
		require.Contains(t, files, chunks["index.html"].File)
		require.Contains(t, files, chunks["src/first.ts"].File, "the first drawing is not what the page runs")
		delete(files, chunks["index.html"].File) // load adds it, with what it imports
		load(t, chunks, "index.html", files)
		load(t, chunks, begin, files)
		size := sent(t, files)
		t.Logf("%s: %d bytes in %d files", begin, size, len(files))
		require.LessOrEqual(t, size, limit, "%s; what it needs must come later, by import()", begin)
	}
}

// TestTheManifestOfTheBuildIsNotServed holds the name of the manifest to a leading dot, which the handler leaves out.
func TestTheManifestOfTheBuildIsNotServed(t *testing.T) {
	t.Parallel()
	manifest(t)
	require.NotContains(t, newSite(built(), "index.html", consolePolicy).files, ".manifest.json")
}

// undrawn are parts of the component library that come with others and that no page draws.
var undrawn = map[string]string{
	"CheckboxCard.css": "Checkbox.Card", "CheckboxIndicator.css": "Checkbox.Indicator",
	"RadioCard.css": "Radio.Card", "RadioIndicator.css": "Radio.Indicator",
}

// TestEveryStyleOfTheComponentLibraryThatIsUsedIsLoaded compares the classes that the built scripts name with those of
// the sheet, which src/styles/mantine.css puts together by component.
func TestEveryStyleOfTheComponentLibraryThatIsUsedIsLoaded(t *testing.T) {
	t.Parallel()
	chunks, library := manifest(t), "node_modules/@mantine/core/styles"
	sheets, err := os.ReadDir(library)
	if err != nil {
		t.Skip("the component library is not installed")
	}
	loaded := classes(t, built(), chunks["index.html"].CSS[0])
	scripts, err := fs.Glob(built(), "assets/*.js")
	require.NoError(t, err)
	used, sources := map[string]bool{}, pages(t)
	for _, script := range scripts {
		for name := range classes(t, built(), script) {
			used[name] = true
		}
	}
	for _, sheet := range sheets {
		if strings.HasSuffix(sheet.Name(), ".layer.css") {
			continue
		}
		if part, ok := undrawn[sheet.Name()]; ok {
			require.NotContains(t, sources, "<"+part, "src/styles/mantine.css needs %s", sheet.Name())
			continue
		}
		for name := range classes(t, os.DirFS(library), sheet.Name()) {
			require.False(t, used[name] && !loaded[name], "src/styles/mantine.css needs %s", sheet.Name())
		}
	}
	require.NotEmpty(t, used)
}

// classes returns the names of the component library's classes in a file.
func classes(t *testing.T, tree fs.FS, name string) map[string]bool {
	t.Helper()
	text, err := fs.ReadFile(tree, name)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, class := range regexp.MustCompile(`\bm_[0-9a-f]{6,8}\b`).FindAllString(string(text), -1) {
		found[class] = true
	}
	return found
}

// pages returns the text of all components of the console.
func pages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("src/*/*.tsx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
