package e2e_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// house has what a person in the repository's folder has after make run: the programs, the examples, and the
// installation's data.
func (w *walker) house() {
	w.t.Helper()
	root := filepath.Dir(w.bin)
	for name, target := range map[string]string{"bin": w.bin, "examples": filepath.Join(root, "examples"),
		".data": filepath.Dir(shared.KeyFile())} {
		require.NoError(w.t, os.Symlink(target, filepath.Join(w.dir, name)))
	}
	w.stands["http://127.0.0.1:8080"] = shared.URL
	w.stands["go build -o bin/ ./"] = "go build -C " + root + " -o bin/ ./"
}

// pulse has the house, and the program of the guide where the documents name it.
func (w *walker) pulse() {
	w.t.Helper()
	w.house()
	w.says("newcomer", "go build -C "+filepath.Dir(w.bin)+" -o bin/ ./examples/adapter-in-an-hour")
	w.stands["'bin/pulse "] = "'bin/adapter-in-an-hour "
	w.stands["127.0.0.1:9000"], w.stands["127.0.0.1:9100"] = freeAddress(w.t), freeAddress(w.t)
	w.stands["bin/pulse --platform-url http://127.0.0.1:9000"] =
		"bin/adapter-in-an-hour --name pulse --platform-url http://" + w.stands["127.0.0.1:9000"]
	// How long the suite looks that nothing more happens: most of its time.
	w.stands["adapter check "] = "adapter check --settle 100ms "
}

// checksPulse is pulse with some of the suite's clauses: the guide of adapters has them all checked.
func (w *walker) checksPulse() {
	w.t.Helper()
	w.pulse()
	w.stands["adapter check "] += "--only describe,dispatch.completes,crash.resumes "
}

// publishesPulse has the operator's login, and the program in the installation's registry, signed, with a manifest
// that pins it.
func (w *walker) publishesPulse() {
	w.t.Helper()
	w.pulse()
	_, code, err := shared.LoginLink(w.ctx, shared.Demo.OperatorID)
	require.NoError(w.t, err)
	w.known["LINK"] = code
	password, err := os.ReadFile(shared.RegistryPasswordFile())
	require.NoError(w.t, err)
	w.variables = append(w.variables, "APPCTL_REGISTRY_USER=push", "APPCTL_REGISTRY_PASSWORD="+string(password))
	w.says("newcomer", "appctl artifact build out --file bin/adapter-in-an-hour")
	ref := w.says("newcomer", "appctl artifact push out "+shared.RegistryAddr()+"/pulse:1.0.0 --plain-http -q")
	w.says("newcomer", "appctl artifact sign "+ref+" --plain-http --key "+shared.SigningKeyFile())
	w.stands["registry.example/pulse"], w.known["sha256"], _ = strings.Cut(ref, "@")
	manifest, err := os.ReadFile("../../examples/adapter-in-an-hour/manifest.json")
	require.NoError(w.t, err)
	w.writes("manifest.json", strings.NewReplacer(`"ref": ""`, `"ref": "`+ref+`"`, `"digest": ""`,
		`"digest": "`+w.known["sha256"]+`"`).Replace(string(manifest)))
}

// hasEdge has a certificate of this machine, a database for servers of its own, and addresses for them.
func (w *walker) hasEdge() {
	w.t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(w.t, err)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	for _, name := range []string{"tls.crt", "adapter.crt", "authority.pem"} {
		w.writes(name, certificate)
	}
	for _, name := range []string{"tls.key", "adapter.key"} {
		w.writes(name, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	}
	w.database("walk_edge")
	tls, proxied, adapter := freeAddress(w.t), freeAddress(w.t), freeAddress(w.t)
	w.stands["/etc/gpuaas/"] = ""
	w.stands["/etc/gpuaas/tls.key --public-url https://console.example …"] = "tls.key --public-url https://" + tls +
		" --listen " + tls
	w.stands["10.0.3.0/24 --public-url https://console.example …"] = "10.0.3.0/24 --public-url https://" + proxied +
		" --listen " + proxied
	w.stands["10.0.9.7:8443"] = adapter
	w.stands["adapter.key …"] = "adapter.key --name slurm-tls --state-dir slurm --platform-url " + shared.URL
	w.stands["register slurm https://adapter.internal:8443"] = "register slurm-tls https://" + adapter
}
