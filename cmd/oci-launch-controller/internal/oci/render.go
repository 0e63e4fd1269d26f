package oci

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

//go:embed templates
var templates embed.FS

// userData is the template of what cloud-init is given.
var userData = template.Must(template.New("user-data.tmpl").Funcs(template.FuncMap{"json": encode}).ParseFS(templates,
	"templates/user-data.tmpl"))

// process is the name under which the agent supervises the container.
const process = "container"

const (
	// graceSeconds is how long a container has between its stop signal and its end.
	graceSeconds = 10
	// maxUserData is the most that a node takes of user data, in bytes, before it is sealed.
	maxUserData = 40 << 10
)

// Where things are in a member.
const (
	top        = "/srv/oci/"
	scriptPath = top + "oci.sh"
)

// file is one that cloud-init writes.
type file struct {
	Path, Mode, Content string
}

// release is one image with one setting, on one member.
type release struct {
	// Name is the container's: the same image with the same setting has the same.
	Name  string
	Files []file

	member  adapter.Member
	profile Profile
	image   adapter.Artifact
	mounts  []mount
	ports   map[string]int
	// manifest is the digest that podman must find.
	manifest string
	start    adapter.StartProcess
}

// renderRelease makes everything that a member needs to run the instance, with the ports that it has there. The
// manifest is the one that the node has placed: of an image for several platforms that of its own.
func renderRelease(instance adapter.Instance, member adapter.Member, ports map[string]int, manifest string) (*release,
	error) {
	p, err := profileOf(instance)
	if err != nil {
		return nil, err
	}
	r := &release{member: member, profile: p, ports: ports, manifest: manifest}
	r.image, _ = instance.Artifact(p.Image)
	r.mounts = mountsOf(instance, p, member)
	known := r.known(instance)
	parts := []file{
		{"env", "0600", envFile(p.Env, known)},
		{"image", "0600", r.imageFile()},
		{"create", "0600", r.createFile(known)},
		{"ready", "0600", r.readyFile(known)},
		{"artifacts", "0644", r.artifactsFile()},
	}
	if p.Usage != nil {
		parts = append(parts, file{"usage", "0600", r.usageFile()})
	}
	identity := encode([]any{instance.Version, member.ID, r.image.Digest, parts, p.Restart})
	sum := sha256.Sum256([]byte(identity))
	r.Name = "r-" + hex.EncodeToString(sum[:8])
	r.start = r.startProcess()
	parts = append(parts, file{"start.json", "0644", encode(r.start) + "\n"})
	for _, part := range parts {
		part.Path = top + "releases/" + r.Name + "/" + part.Path
		r.Files = append(r.Files, part)
	}
	return r, nil
}

// render is the whole document for cloud-init.
func (r *release) render() (string, error) {
	all := *r
	all.Files = nil
	for _, fixed := range []file{
		{scriptPath, "0755", "oci.sh"}, {"/etc/containers/containers.conf", "0644", "containers.conf"},
		{"/etc/containers/storage.conf", "0644", "storage.conf"},
		{"/etc/containers/registries.conf", "0644", "registries.conf"},
		{"/etc/containers/policy.json", "0644", "policy.json"},
	} {
		content, err := templates.ReadFile("templates/" + fixed.Content)
		if err != nil {
			return "", fmt.Errorf("template: %w", err)
		}
		fixed.Content = string(content)
		all.Files = append(all.Files, fixed)
	}
	all.Files = append(all.Files, r.Files...)
	var out bytes.Buffer
	if err := userData.Execute(&out, all); err != nil {
		return "", fmt.Errorf("render user data: %w", err)
	}
	if out.Len() > maxUserData {
		return "", refusal("RUNTIME_PROFILE_INVALID", "runtimeProfile", "makes %d bytes of user data, the limit is %d",
			out.Len(), maxUserData)
	}
	return out.String(), nil
}

// known are the names that the profile's texts may use, and the container's environment has besides its own.
func (r *release) known(instance adapter.Instance) map[string]string {
	known := map[string]string{
		"GPUAAS_INSTANCE_ID": instance.ID, "GPUAAS_INSTANCE_NAME": instance.Name,
		"GPUAAS_APP_VERSION": instance.Version,
		"GPUAAS_MEMBER_ID":   r.member.ID, "GPUAAS_MEMBER_INDEX": strconv.Itoa(r.member.Index),
		"GPUAAS_NODE_NAME": r.member.Node.Name, "GPUAAS_NODE_ADDRESS": r.member.Node.Address,
		"GPUAAS_GPU_COUNT": strconv.Itoa(r.profile.Resources.GPUs),
	}
	if r.member.Address != "" {
		known["GPUAAS_MEMBER_ADDRESS"] = r.member.Address
	}
	for name, port := range r.ports {
		known["PORT_"+portWord(name)] = strconv.Itoa(port)
	}
	return known
}

// portWord is a port's name as part of a variable's.
func portWord(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(name))
}

func envFile(env, known map[string]string) string {
	all := maps.Clone(known)
	for name, value := range env {
		all[name] = expand(value, known)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "%s=%s\n", name, all[name])
	}
	return out.String()
}

// imageFile is what the script reads of the release.
func (r *release) imageFile() string {
	var limited []string
	if r.profile.Resources.MemoryMiB > 0 {
		limited = append(limited, fmt.Sprintf("--memory=%dm", r.profile.Resources.MemoryMiB))
	}
	if r.profile.Resources.CPUs > 0 {
		limited = append(limited, "--cpus="+strconv.FormatFloat(r.profile.Resources.CPUs, 'f', -1, 64))
	}
	return fmt.Sprintf("layout=\"$top/layouts/%s\"\ndigest=%s\ngrace=%d\ngpus=%d\nlimited=%s\n",
		hexOf(r.image.Digest), r.manifest, graceSeconds, r.profile.Resources.GPUs, quote(strings.Join(limited, " ")))
}

// createFile calls the script's create with the options, the image and its arguments.
func (r *release) createFile(known map[string]string) string {
	p := r.profile
	args := []string{}
	if p.ReadOnly {
		args = append(args, "--read-only")
	}
	var out strings.Builder
	for _, one := range r.mounts {
		out.WriteString(one.made())
		args = append(args, one.option())
	}
	if len(p.Command) > 0 {
		args = append(args, "--entrypoint="+encode(expandAll(p.Command, known)))
	}
	out.WriteString("create")
	for _, arg := range args {
		out.WriteString(" " + quote(arg))
	}
	out.WriteString(` "$(cat "$at/id")"`)
	for _, arg := range expandAll(p.Args, known) {
		out.WriteString(" " + quote(arg))
	}
	return out.String() + "\n"
}

// readyFile is what the script asks of a container that runs. Python is there: cloud-init is written in it.
func (r *release) readyFile(known map[string]string) string {
	h := r.profile.Health
	switch {
	case h == nil:
		return "true\n"
	case h.Exec != nil:
		out := `podman exec "$release"`
		for _, word := range expandAll(h.Exec.Command, known) {
			out += " " + quote(word)
		}
		return out + " > /dev/null\n"
	}
	return fmt.Sprintf("python3 - %s %d %d <<'PY'\n%sPY\n", quote(r.local(h.HTTP.Port, h.HTTP.Path)),
		h.HTTP.ExpectStatus, or(h.TimeoutSeconds, 5), httpCheck)
}

// local is an address of the container as its member reaches it, with the port that it got.
func (r *release) local(port int, path string) string {
	for _, wanted := range r.profile.Ports {
		if got, ok := r.ports[wanted.Name]; ok && wanted.Port == port {
			port = got
			break
		}
	}
	return fmt.Sprintf("http://127.0.0.1:%d%s", port, path)
}

// usageFile is how the script reads what a container that runs has counted.
func (r *release) usageFile() string {
	var names []string
	for _, one := range r.profile.Usage.Counters {
		names = append(names, quote(one.Metric))
	}
	return fmt.Sprintf("python3 - %s %s <<'PY'\n%sPY\n", quote(r.local(r.profile.Usage.Port, r.profile.Usage.Path)),
		strings.Join(names, " "), readCounters)
}

// readCounters gets metrics, and prints the lines of those that are named.
const readCounters = `import http.client, re, sys, urllib.parse
at = urllib.parse.urlsplit(sys.argv[1])
link = http.client.HTTPConnection(at.hostname, at.port, timeout=5)
try:
    link.request("GET", at.path + ("?" + at.query if at.query else ""))
    answer = link.getresponse()
    text = answer.read(4 << 20).decode("utf-8", "replace")
except (OSError, http.client.HTTPException) as fault:
    sys.exit(f"oci: no answer: {fault}")
if answer.status != 200:
    sys.exit(f"oci: answered {answer.status}")
for line in text.splitlines():
    if re.split("[{ ]", line, maxsplit=1)[0] in sys.argv[2:]:
        print(line)
`

// httpCheck gets an address, follows no redirect, and compares the status.
const httpCheck = `import http.client, sys, urllib.parse
at = urllib.parse.urlsplit(sys.argv[1])
want = int(sys.argv[2])
link = http.client.HTTPConnection(at.hostname, at.port, timeout=int(sys.argv[3]))
try:
    link.request("GET", at.path + ("?" + at.query if at.query else ""))
    got = link.getresponse().status
except (OSError, http.client.HTTPException) as fault:
    sys.exit(f"oci: no answer: {fault}")
if got != want if want else not 200 <= got < 400:
    sys.exit(f"oci: answered {got}")
`

func (r *release) artifactsFile() string {
	var out strings.Builder
	for _, held := range r.fetched() {
		out.WriteString(held.folder() + "\n")
	}
	return out.String()
}

// startProcess is how the agent runs the release.
func (r *release) startProcess() adapter.StartProcess {
	policy := map[string]string{"never": "never", "always": "always"}[r.profile.Restart.Policy]
	if policy == "" {
		policy = "on_failure"
	}
	return adapter.StartProcess{
		Name: process, Command: verb("run", r.Name).Command, StopTimeoutSeconds: graceSeconds + 10,
		Restart: adapter.Restart{Policy: policy, MaxRestarts: r.profile.Restart.MaxRestarts, BackoffSeconds: 1},
	}
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

func or(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}

// encode is JSON without escaping what HTML would not like; the value is one of this package's own.
func encode(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings, numbers and structs of them always encode
	return strings.TrimSuffix(out.String(), "\n")
}

// quote makes a word that a shell takes as it is.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
