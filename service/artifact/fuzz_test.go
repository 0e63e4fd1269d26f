package artifact

import (
	"strings"
	"testing"

	"github.com/gpuaas/app-platform/domain/fault"
)

// FuzzParseRef: a reference that is taken names a registry and is pinned; any other is the caller's mistake.
func FuzzParseRef(f *testing.F) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for _, seed := range []string{"registry.test/x/y" + digest, "x" + digest, "registry.test:5000/x" + digest, "http://x" + digest, "registry.test/x:tag", "[::1]:5000/x" + digest, "@sha256:", digest, "a/../b" + digest, "127.1/x" + digest} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		pinned, err := Registries{Insecure: []string{"registry.test:5000"}}.parseRef(ref)
		if err != nil {
			if !fault.Is(err, fault.InvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		if pinned.RegistryStr() == "" || !strings.HasPrefix(pinned.DigestStr(), "sha256:") || strings.ContainsAny(pinned.RegistryStr(), "/@ ") {
			t.Fatalf("took %q as %s", ref, pinned)
		}
	})
}
