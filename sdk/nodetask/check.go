package nodetask

import (
	"encoding/base64"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// MaxUserData bounds cloud-init user data, in bytes: above it clouds differ in what they accept.
const MaxUserData = 64 << 10

// The bounds inside a specification.
const (
	maxArgs     = 1_024
	maxEnv      = 512
	maxSeconds  = 3_600
	maxAttempts = 3_600
	maxPath     = 4_096 // bytes, as the kernel's
	maxAccount  = 128   // bytes of "user:group"
	maxHost     = 253   // bytes of a host name
	maxURLPath  = 2_048 // bytes
	// maxRestarts is far beyond any use and keeps the number within 32 bits.
	maxRestarts = 1_000_000
	// boxOverhead is what sealing adds to a value, in bytes.
	boxOverhead = 48
)

var (
	processName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)
	envName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	platformForm = regexp.MustCompile(`^[a-z0-9]{1,20}/[a-z0-9_]{1,20}(/[a-z0-9.]{1,20})?$`)
	hostForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	digestForm   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	secretForm   = regexp.MustCompile(`^sec_[0-7][0-9a-hjkmnp-tv-z]{25}$`) // 128 bits in lower-case Crockford base32
	accountName  = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.$-]*(:[A-Za-z0-9_.][A-Za-z0-9_.$-]*)?$`)
)

// nameRule is what is wrong with a name that does not match processName.
const nameRule = "must be letters, digits, dot, dash and underscore, at most 64, starting with a letter or digit"

// signals holds the names of the signals that can stop a process, without SIG.
var signals = []string{
	"ABRT", "ALRM", "BUS", "CHLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "KILL", "PIPE", "PROF", "PWR", "QUIT",
	"SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH",
	"XCPU", "XFSZ",
}

func (s *Run) check(c *checker) {
	c.command("command", s.Command)
	c.env(s.Env)
	c.workDir(s.WorkDir)
	c.account("user", s.User)
}

func (s *WriteFile) check(c *checker) {
	if !path.IsAbs(s.Path) || path.Clean(s.Path) == "/" || strings.HasSuffix(s.Path, "/") || len(s.Path) > maxPath {
		c.bad("path", "must name a file by an absolute path of at most %d bytes", maxPath)
	}
	if mode, err := strconv.ParseUint(s.Mode, 8, 32); s.Mode != "" && (err != nil || mode > 0o7777) {
		c.bad("mode", "must be octal, such as 0644")
	}
	c.account("owner", s.Owner)
	given := 0
	for _, content := range []bool{s.Content != nil, s.ContentBase64 != nil, s.Sealed != nil, s.SecretRef != nil} {
		if content {
			given++
		}
	}
	if given > 1 {
		c.bad("content", "only one of content, contentBase64, sealed and secretRef can be given")
	}
	if s.ContentBase64 != nil {
		if _, err := base64.StdEncoding.DecodeString(*s.ContentBase64); err != nil {
			c.bad("contentBase64", "is not base64")
		}
	}
	c.sealed("sealed", s.Sealed)
	c.secretRef("secretRef", s.SecretRef)
}

func (s *StartProcess) check(c *checker) {
	c.name(s.Name)
	c.command("command", s.Command)
	c.env(s.Env)
	c.workDir(s.WorkDir)
	c.account("user", s.User)
	if !slices.Contains([]string{"", "never", "on_failure", "always"}, s.Restart.Policy) {
		c.bad("restart.policy", "must be never, on_failure or always")
	}
	c.whole("restart.maxRestarts", s.Restart.MaxRestarts, 0, maxRestarts)
	c.seconds("restart.backoffSeconds", s.Restart.BackoffSeconds)
	if s.StopSignal != "" && !slices.Contains(signals, strings.TrimPrefix(strings.ToUpper(s.StopSignal), "SIG")) {
		c.bad("stopSignal", "must be the name of a signal, such as SIGTERM")
	}
	c.seconds("stopTimeoutSeconds", s.StopTimeoutSeconds)
}

func (s *FetchArtifact) check(c *checker) {
	if !digestForm.MatchString(s.Digest) {
		c.bad("digest", "must be sha256: and 64 hexadecimal digits")
	}
	if !path.IsAbs(s.Path) || path.Clean(s.Path) == "/" || len(s.Path) > maxPath {
		c.bad("path", "must be an absolute path of at most %d bytes, and not the root", maxPath)
	}
	if !slices.Contains([]string{"", "oci_layout", "files", "file"}, s.As) {
		c.bad("as", "must be oci_layout, files or file")
	}
	if s.Platform != "" && !platformForm.MatchString(s.Platform) {
		c.bad("platform", "must be os/architecture or os/architecture/variant, such as linux/amd64")
	}
	if mode, err := strconv.ParseUint(s.Mode, 8, 32); s.Mode != "" && (err != nil || mode > 0o7777) {
		c.bad("mode", "must be octal, such as 0644")
	}
	c.account("owner", s.Owner)
}

func (s *CloudInit) check(c *checker) {
	if (s.UserData != "") == (s.UserDataSealed != nil) {
		c.bad("userData", "exactly one of userData and userDataSealed must be given")
	}
	if len(s.UserData) > MaxUserData {
		c.bad("userData", "at most %d bytes", MaxUserData)
	}
	c.sealed("userDataSealed", s.UserDataSealed)
	if !processName.MatchString(s.InstanceID) {
		c.bad("instanceId", nameRule)
	}
	if s.Hostname != "" && !hostForm.MatchString(s.Hostname) {
		c.bad("hostname", "must be a host name of at most 63 letters, digits and hyphens")
	}
}

func (s *StopProcess) check(c *checker)    { c.name(s.Name) }
func (s *InspectProcess) check(c *checker) { c.name(s.Name) }
func (s *ResidueQuery) check(*checker)     {}
func (s *Teardown) check(*checker)         {}

func (s *Probe) check(c *checker) {
	ways := 0
	for _, given := range []bool{s.Exec != nil, s.TCP != nil, s.HTTP != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		c.bad("exec", "needs exactly one of exec, tcp and http, has %d", ways)
		return
	}
	switch {
	case s.Exec != nil:
		c.command("exec.command", s.Exec.Command)
	case s.TCP != nil:
		c.whole("tcp.port", s.TCP.Port, 1, 65_535)
		c.host("tcp.host", s.TCP.Host)
	default:
		s.HTTP.check(c)
	}
	c.whole("attempts", s.Attempts, 0, maxAttempts)
	c.seconds("intervalSeconds", s.IntervalSeconds)
	c.seconds("timeoutSeconds", s.TimeoutSeconds)
}

func (p *HTTPProbe) check(c *checker) {
	c.whole("http.port", p.Port, 1, 65_535)
	c.host("http.host", p.Host)
	relative := p.Path != "" && !strings.HasPrefix(p.Path, "/")
	if relative || len(p.Path) > maxURLPath || strings.ContainsFunc(p.Path, unprintable) {
		c.bad("http.path", "must begin with a slash and hold at most %d printable characters without spaces",
			maxURLPath)
	}
	if p.ExpectStatus != 0 {
		c.whole("http.expectStatus", p.ExpectStatus, 100, 599)
	}
}

func (c *checker) command(at string, command []string) {
	if len(command) == 0 || command[0] == "" {
		c.bad(at, "must name a program")
	}
	if len(command) > maxArgs {
		c.bad(at, "at most %d arguments", maxArgs)
	}
}

func (c *checker) env(env []EnvVar) {
	if len(env) > maxEnv {
		c.bad("env", "at most %d variables", maxEnv)
		return
	}
	for i, entry := range env {
		at := "env." + strconv.Itoa(i)
		if !envName.MatchString(entry.Name) {
			c.bad(at+".name", "must be letters, digits and underscores, at most 128, not starting with a digit")
		}
		if entry.Value != nil && entry.Sealed != nil {
			c.bad(at, "has both a value and a sealed value")
		}
		if entry.SecretRef != nil && (entry.Value != nil || entry.Sealed != nil) {
			c.bad(at, "has both a reference to a secret and a value")
		}
		c.sealed(at+".sealed", entry.Sealed)
		c.secretRef(at+".secretRef", entry.SecretRef)
	}
}

func (c *checker) sealed(at string, text *string) {
	if text == nil {
		return
	}
	if raw, err := base64.StdEncoding.DecodeString(*text); err != nil || len(raw) < boxOverhead {
		c.bad(at, "must be the base64 of a sealed value")
	}
}

func (c *checker) secretRef(at string, id *string) {
	if id == nil {
		return
	}
	if !secretForm.MatchString(*id) {
		c.bad(at, "must be the id of a runtime secret")
		return
	}
	c.refs = append(c.refs, SecretRef{Path: "spec." + at, ID: *id})
}

func (c *checker) name(name string) {
	if !processName.MatchString(name) {
		c.bad("name", nameRule)
	}
}

func (c *checker) workDir(dir string) {
	if dir != "" && (!path.IsAbs(dir) || len(dir) > maxPath) {
		c.bad("workDir", "must be an absolute path of at most %d bytes", maxPath)
	}
}

func (c *checker) account(at, account string) {
	if account != "" && (len(account) > maxAccount || !accountName.MatchString(account)) {
		c.bad(at, "must be user or user:group, at most %d bytes", maxAccount)
	}
}

func (c *checker) host(at, host string) {
	if len(host) > maxHost || strings.ContainsFunc(host, unprintable) || strings.ContainsAny(host, "/?#@[]\\") {
		c.bad(at, "must be a host name or an address, at most %d bytes", maxHost)
	}
}

func (c *checker) whole(at string, value, least, most int) {
	if value < least || value > most {
		c.bad(at, "must be %d to %d", least, most)
	}
}

func (c *checker) seconds(at string, value float64) {
	if value < 0 || value > maxSeconds {
		c.bad(at, "must be 0 to %d seconds", maxSeconds)
	}
}

// unprintable reports whether a character cannot be part of a host or of a URL's path.
func unprintable(r rune) bool { return r <= ' ' || r == 0x7f || r == unicode.ReplacementChar }
