package e2e_test

import (
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

// publishes makes the walk's person a publisher's account, of an app whose version 1.1.0 is active, and pushes and
// signs the next one's image, with a manifest that pins it.
func (w *walker) publishes(app string) *publisher {
	w.t.Helper()
	p := newPublisher(w.t, app)
	p.release("1.1.0")
	w.gone = true // what a publisher has made stays with the installation
	ref, digest := p.push("1.2.0")
	p.must("artifact", "sign", ref, "--plain-http")
	template, err := os.ReadFile(p.template)
	require.NoError(w.t, err)
	w.writes("manifest.json", strings.NewReplacer("@VERSION@", "1.2.0", "@REF@", ref, "@DIGEST@", digest).
		Replace(string(template)))
	w.known["sha256"] = digest
	w.stands["registry.example/apps/pulse:1.2.0"] = ref
	w.stands["pulse@"] = app + "@"
	w.variables = append(w.variables, "APPCTL_TOKEN="+p.key, "APPCTL_PROJECT="+p.project)
	return p
}

// promotes is a publisher whose version is on its way.
func (w *walker) promotes() { w.publishes("promoted") }

// stages is a publisher whose version is staged.
func (w *walker) stages() {
	w.t.Helper()
	p := w.publishes("tried")
	p.must("artifact", "publish", w.stands["registry.example/apps/pulse:1.2.0"])
	for _, stage := range []string{"staged", "canary", "active"} {
		p.must("promote", "artifact", w.known["sha256"], "--to", stage, "--reason", "1.2.0")
	}
	w.known["man"] = p.must("manifest", "publish", w.dir+"/manifest.json")
	p.must("promote", "manifest", w.known["man"], "--to", "staged", "--reason", "smoke ran", "--smoke-instance",
		p.must("manifest", "smoke", w.known["man"]))
}
