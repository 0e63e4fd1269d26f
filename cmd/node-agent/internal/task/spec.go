package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// The bounds of a specification.
const (
	maxArgs    = 1024
	maxEnv     = 512
	maxContent = 1 << 20 // bytes of a file or of standard input
	maxSeconds = 3600
)

var (
	processName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

type envSpec struct {
	Name      string  `json:"name"`
	Value     *string `json:"value"`
	Sealed    *string `json:"sealed"`
	SecretRef *string `json:"secretRef"`
}

type runSpec struct {
	Command []string  `json:"command"`
	Env     []envSpec `json:"env"`
	WorkDir string    `json:"workDir"`
	User    string    `json:"user"`
	Stdin   string    `json:"stdin"`
}

type fileSpec struct {
	Path          string  `json:"path"`
	Mode          string  `json:"mode"`
	Owner         string  `json:"owner"`
	Content       *string `json:"content"`
	ContentBase64 *string `json:"contentBase64"`
	Sealed        *string `json:"sealed"`
	SecretRef     *string `json:"secretRef"`
	MakeDirs      bool    `json:"makeDirs"`
}

type fetchSpec struct {
	Digest   string `json:"digest"`
	Path     string `json:"path"`
	As       string `json:"as"`
	Platform string `json:"platform"`
	Mode     string `json:"mode"`
	Owner    string `json:"owner"`
}

type cloudSpec struct {
	UserData       *string `json:"userData"`
	UserDataSealed *string `json:"userDataSealed"`
	InstanceID     string  `json:"instanceId"`
	Hostname       string  `json:"hostname"`
}

type startSpec struct {
	Name    string    `json:"name"`
	Command []string  `json:"command"`
	Env     []envSpec `json:"env"`
	WorkDir string    `json:"workDir"`
	User    string    `json:"user"`
	Restart struct {
		Policy         string   `json:"policy"`
		MaxRestarts    int      `json:"maxRestarts"`
		BackoffSeconds *float64 `json:"backoffSeconds"`
	} `json:"restart"`
	StopSignal         string   `json:"stopSignal"`
	StopTimeoutSeconds *float64 `json:"stopTimeoutSeconds"`
}

type nameSpec struct {
	Name string `json:"name"`
}

type probeSpec struct {
	Exec *struct {
		Command []string `json:"command"`
	} `json:"exec"`
	TCP *struct {
		Port int    `json:"port"`
		Host string `json:"host"`
	} `json:"tcp"`
	HTTP *struct {
		Port         int    `json:"port"`
		Path         string `json:"path"`
		Host         string `json:"host"`
		ExpectStatus int    `json:"expectStatus"`
	} `json:"http"`
	Attempts        int     `json:"attempts"`
	IntervalSeconds float64 `json:"intervalSeconds"`
	TimeoutSeconds  float64 `json:"timeoutSeconds"`
}

// invalid makes the error for a field of the specification.
func invalid(field, format string, args ...any) error {
	return wire.Errorf(wire.CodeSpecInvalid, "%s: %s", field, fmt.Sprintf(format, args...))
}

// decode reads a specification strictly.
func decode(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("more than one document")
	}
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return invalid(kind.Field, "must be %s, not %s", kind.Type, kind.Value)
	}
	if errors.Is(err, io.EOF) {
		return invalid("spec", "is missing")
	}
	return invalid("spec", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

func checkCommand(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return invalid("command", "must name a program")
	}
	if len(command) > maxArgs {
		return invalid("command", "has %d arguments, at most %d are possible", len(command), maxArgs)
	}
	for i, argument := range command {
		if strings.ContainsRune(argument, 0) {
			return invalid(fmt.Sprintf("command[%d]", i), "contains a NUL")
		}
	}
	return nil
}

func fileMode(text string) (uint32, error) {
	if text == "" {
		return 0o644, nil
	}
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o7777 {
		return 0, invalid("mode", "%q is not an octal mode such as 0644", text)
	}
	return uint32(mode), nil
}

func checkProcessName(name string) error {
	if !processName.MatchString(name) {
		return invalid("name", "%q is not a name: letters, digits, dot, dash, underscore, at most 64", name)
	}
	return nil
}

// millis checks a number of seconds and gives the default where there is none.
func millis(field string, seconds *float64, absent float64) (int64, error) {
	value := absent
	if seconds != nil && *seconds != 0 {
		value = *seconds
	}
	if value < 0 || value > maxSeconds {
		return 0, invalid(field, "%v is not between 0 and %d", value, maxSeconds)
	}
	return int64(value * 1000), nil
}

func checkPolicy(policy string) (string, error) {
	switch policy {
	case "":
		return memberinit.PolicyNever, nil
	case memberinit.PolicyNever, memberinit.PolicyOnFailure, memberinit.PolicyAlways:
		return policy, nil
	}
	return "", invalid("restart.policy", "%q is not never, on_failure or always", policy)
}

func checkSignal(name string) error {
	if _, ok := memberinit.KnownSignal(name); name != "" && !ok {
		return invalid("stopSignal", "%q is not a signal", name)
	}
	return nil
}
