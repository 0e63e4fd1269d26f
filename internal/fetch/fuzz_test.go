package fetch

import (
	"strings"
	"testing"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
)

// FuzzParse: a reference that is taken names a host and a digest, a tag or a file; any other is the caller's mistake.
func FuzzParse(f *testing.F) {
	pinned := "@sha256:" + strings.Repeat("a", 64)
	for _, seed := range []string{
		"registry.test/x/y" + pinned, "x" + pinned, "registry.test:5000/x" + pinned, "http://x" + pinned,
		"registry.test/x:tag", "[::1]:5000/x" + pinned,
		"@sha256:", pinned, "a/../b" + pinned, "127.1/x" + pinned, "https://files.test/a/b", "https://u:p@files.test/a",
		"https://files.test/a?b", "https://files.test/a/../b", "http:///x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		parsed, err := Parse(ref)
		if err != nil {
			if !fault.Is(err, fault.InvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		if parsed.Host() == "" || strings.ContainsAny(parsed.Host(), "/@ ?#") {
			t.Fatalf("took %q as %+v", ref, parsed)
		}
		if ways := btoi(parsed.File()) + btoi(parsed.Tag != "") + btoi(parsed.Digest != ""); ways != 1 ||
			parsed.Digest != "" && !digest.Valid(parsed.Digest) {
			t.Fatalf("took %q as %+v", ref, parsed)
		}
		if parsed.File() && strings.ContainsAny(parsed.Pinned(""), "?#@\x00") && !strings.ContainsAny(ref, "@") {
			t.Fatalf("took %q as %s", ref, parsed.Pinned(""))
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
