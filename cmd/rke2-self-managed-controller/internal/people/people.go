// Package people lets people into a cluster by certificates of minutes: the caller creates a key and a request for it,
// the cluster's own API signs it, and a role, which follows from the platform's permission, bounds what the certificate
// may. No key and no file of the cluster's administrator leaves the cluster.
package people

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// life is how long a certificate is good. The path to the API ends within seconds of the right; what is left of a
	// certificate then opens nothing from outside.
	life = 15 * time.Minute
	// signTime bounds what the cluster takes to sign.
	signTime = 25 * time.Second
	// leastRSA is the smallest RSA key that is signed, in bits.
	leastRSA = 2048
)

// What the API is reached by, and what clients of it need to know.
const (
	endpoint      = "api"
	serverName    = "kubernetes"
	clientVersion = "client.authentication.k8s.io/v1"
)

// groupPrefix begins the groups that people's certificates name.
const groupPrefix = "gpuaas:"

// roles are the cluster's own roles by the level that a permission grants.
var roles = []struct{ level, role string }{{"viewer", "view"}, {"member", "edit"}, {"admin", "cluster-admin"}}

// Actions returns the actions by their names.
func Actions() map[string]adapter.ActionFunc {
	actions := map[string]adapter.ActionFunc{"kubeconfig.cluster": cluster}
	for _, one := range roles {
		actions["kubeconfig."+one.level] = func(ctx context.Context, call *adapter.Call) (any, error) {
			return certify(ctx, call, one.level)
		}
	}
	return actions
}

// Authority prints the certificate that the API server's is signed by.
func Authority() adapter.RunCommand {
	return adapter.RunCommand{Command: machine.Shell(`cat "$R` + machine.CaPath + `"`)}
}

// cluster says how the API is reached and known.
func cluster(ctx context.Context, call *adapter.Call) (any, error) {
	on, err := machine.Asked(call)
	if err != nil {
		return nil, err
	}
	said, err := call.Do(ctx, on, "authority", Authority(), adapter.Within(machine.Quick))
	if err != nil {
		return nil, err
	}
	return map[string]any{"endpoint": endpoint, "authority": said.Stdout, "serverName": serverName,
		"credentialVersion": clientVersion}, nil
}

// certify has the cluster sign the caller's request for a certificate of a level.
func certify(ctx context.Context, call *adapter.Call, level string) (any, error) {
	var input struct{ Request string }
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return nil, err
	}
	request, err := read(input.Request, call.Requester.ID, groupPrefix+level)
	if err != nil {
		return nil, err
	}
	on, err := machine.Asked(call)
	if err != nil {
		return nil, err
	}
	bind := machine.Kubectl("apply", "-f", "-")
	if bind.Stdin, err = bindings(); err != nil {
		return nil, err
	}
	if _, err := call.Do(ctx, on, "roles", bind, adapter.Within(machine.Quick)); err != nil {
		return nil, err
	}
	ask, err := signing(nameOf(call.Key()), request)
	if err != nil {
		return nil, err
	}
	said, err := call.Do(ctx, on, "sign", ask, adapter.Within(signTime))
	if err != nil {
		return nil, err
	}
	return signed(said.Stdout, call.Requester.ID, groupPrefix+level)
}

// read parses a request, and refuses one that names another person or group than its action is for: the cluster signs
// what the request says.
func read(text, who, group string) ([]byte, error) {
	refuse := func(format string, args ...any) error {
		return adapter.Reject("REQUEST_INVALID", "input.request", format, args...)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
		return nil, refuse("is not one certificate request in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return nil, refuse("is not a certificate request signed by its own key")
	}
	subject := request.Subject
	switch {
	case subject.CommonName != who || len(subject.Organization) != 1 || subject.Organization[0] != group ||
		len(subject.Names) != 2:
		return nil, refuse("must have the subject CN=%s, O=%s, and nothing else", who, group)
	case len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs)+
		len(request.Extensions) > 0:
		return nil, refuse("must have no hosts and no extensions")
	}
	switch key := request.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
	case *rsa.PublicKey:
		if key.N.BitLen() < leastRSA {
			return nil, refuse("must have an RSA key of %d bits or more", leastRSA)
		}
	default:
		return nil, refuse("has a key of an unknown kind: use ECDSA, Ed25519 or RSA")
	}
	return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}), nil
}

// object is something of the API.
type object map[string]any

// bindings are the bindings of the groups to the cluster's roles, as one list for the API. The role view leaves Nodes
// out, and a person who views a cluster wants to see them.
func bindings() (string, error) {
	const group = "rbac.authorization.k8s.io"
	bind := func(name, role string, levels ...string) object {
		subjects := []object{}
		for _, level := range levels {
			subjects = append(subjects, object{"apiGroup": group, "kind": "Group", "name": groupPrefix + level})
		}
		return object{"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name},
			"roleRef": object{"apiGroup": group, "kind": "ClusterRole", "name": role}, "subjects": subjects}
	}
	items := []object{{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": "gpuaas-nodes"},
		"rules": []object{{"apiGroups": []string{""}, "resources": []string{"nodes"},
			"verbs": []string{"get", "list", "watch"}}}}, bind("gpuaas-nodes", "gpuaas-nodes", "viewer", "member")}
	for _, one := range roles {
		items = append(items, bind("gpuaas-"+one.level, one.role, one.level))
	}
	raw, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	return string(raw), err
}

// nameOf is the request's name in the cluster: a repeat of the action has the same one.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "gpuaas-" + hex.EncodeToString(sum[:12])
}

// signing has the API sign a request, takes the certificate, and leaves no request behind.
func signing(name string, request []byte) (adapter.RunCommand, error) {
	raw, err := json.Marshal(object{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
		"metadata": object{"name": name}, "spec": object{"request": base64.StdEncoding.EncodeToString(request),
			"signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": int(life / time.Second),
			"usages": []string{"client auth"}}})
	const script = machine.KubectlHead + `c() { ` + machine.Plain + ` "$@"; }; ` +
		`trap "c delete csr $1 --ignore-not-found > /dev/null" EXIT; c create -f - > /dev/null; ` +
		`c certificate approve "$1" > /dev/null || exit 1; i=0; ` +
		`while text="$(c get csr "$1" -o "go-template={{.status.certificate}}")"; do ` +
		`case "$text" in ""|"<no value>") ;; *) break ;; esac; i=$((i + 1)); test "$i" -lt 60 || break; sleep 0.2; done; ` +
		`echo "$text"`
	return adapter.RunCommand{Command: machine.Shell(script, name), Stdin: string(raw)}, err
}

// signed reads what the cluster has signed, and verifies that it is what was requested.
func signed(text, who, group string) (any, error) {
	fail := func(why string) error {
		return adapter.Fail("NOT_SIGNED", adapter.OwnerNode, true, "the cluster signed no certificate: %s", why)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) == 0 {
		return nil, fail("its controller manager did not answer in time")
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fail("its answer is not a certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fail(err.Error())
	}
	if certificate.Subject.CommonName != who || fmt.Sprint(certificate.Subject.Organization) != "["+group+"]" {
		return nil, fail("the certificate has another subject")
	}
	return map[string]any{"certificate": string(raw), "user": who, "group": group,
		"expiresAt": certificate.NotAfter.UTC().Format(time.RFC3339)}, nil
}
