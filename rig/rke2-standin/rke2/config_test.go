package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFlagsWinOverFilesAndLaterFilesOverEarlierOnes is RKE2's order; a key that ends with + adds.
func TestFlagsWinOverFilesAndLaterFilesOverEarlierOnes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.yaml":               "node-ip: 192.0.2.1\nnode-name: Fred\ntls-san: [one]\ncni: canal\n",
		"config.yaml.d/10-a.yaml":   "cni: none\ntls-san+: [two]\n",
		"config.yaml.d/20-b.yaml":   "cni: cilium\n",
		"config.yaml.d/30-c.ignore": "cni: calico\n",
		"token":                     "secret\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := read("server", []string{"--config", filepath.Join(dir, "config.yaml"), "--data-dir=/data",
		"--token-file", filepath.Join(dir, "token"), "--tls-san=three"})
	if err != nil {
		t.Fatal(err)
	}
	for key, wanted := range map[string]string{"cni": "cilium", "node-ip": "192.0.2.1", "tls-san": "three"} {
		if got := s.value(key, ""); got != wanted {
			t.Errorf("%s is %q, not %q", key, got, wanted)
		}
	}
	if s.nodeName() != "fred" || s.path("bin") != "/data/bin" || s.secret("token") != "secret" {
		t.Errorf("%q %q %q", s.nodeName(), s.path("bin"), s.secret("token"))
	}
	if _, err := read("server", []string{"--no-such-flag=1"}); err == nil {
		t.Error("an unknown flag was taken")
	}
	if _, err := read("agent", []string{"--node-ip=192.0.2.1"}); err == nil {
		t.Error("an agent without a token and a server was taken")
	}
}

func TestTokensAreReadInFullAndAsPasswords(t *testing.T) {
	for text, wanted := range map[string][3]string{
		"secret":                {"", "", "secret"},
		"K10abc::server:secret": {"abc", "server", "secret"},
		"K10abc::node:se:cret":  {"abc", "node", "se:cret"},
	} {
		if hash, user, password := splitToken(text); [3]string{hash, user, password} != wanted {
			t.Errorf("%s is read as %q %q %q", text, hash, user, password)
		}
	}
}
