// Package node holds the verbs on nodes: an operator mints a one-time enrolment, the agent of a
// machine enrols it, renews its credential and reports that it is alive.
package node

import (
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"regexp"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Service holds the verbs on nodes.
type Service struct {
	DB *tx.DB
	// Hub wakes the calls that wait for a change of the network.
	Hub *event.Hub
	// Stopping is closed when the process ends: calls that wait return at once. A nil one is never closed.
	Stopping <-chan struct{}
	// CredentialLife is how long a node's credential works; 0 means 24 hours.
	CredentialLife time.Duration
}

// defaultLife is how long a node's credential works when CredentialLife is 0.
const defaultLife = 24 * time.Hour

func (s *Service) life() time.Duration {
	if s.CredentialLife > 0 {
		return s.CredentialLife
	}
	return defaultLife
}

// Bounds of what operators and agents write.
const (
	maxTTLMinutes = 1_440
	maxCPUs       = 4_096
	maxMemoryMiB  = 64 << 20 // 64 TiB
	maxGPUs       = 64
	maxLabels     = 4 << 10 // bytes of JSON
	sealingBytes  = 32      // an X25519 public key
)

// namePattern is a host name in lower case.
var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// placePattern is a region or SKU.
var placePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// object is the calling node as an object of authorisation.
func object(actor *authz.Actor) authz.Object { return authz.Object{NodeID: actor.NodeID} }

// Inventory is the hardware and software that a node reports.
type Inventory struct {
	CPUs, MemoryMiB, GPUs int
	GPUModel              string
	GPUsSimulated         bool
	Isolation             lifecycle.NodeIsolation
	Region, SKU, Kernel   string
	Labels                json.RawMessage // an object; nil for none
	// Walls and Devices are nil from an agent that does not know them.
	Walls   *isolation.Walls
	Devices []isolation.Device
	// Storage is what it serves volumes from; nil from an agent that does not know.
	Storage []volume.Storage
}

// check notes what is wrong with the inventory at the path.
func (v *Inventory) check(in *check.Input, at string) {
	whole(in, at+".cpus", v.CPUs, 1, maxCPUs)
	whole(in, at+".memoryMiB", v.MemoryMiB, 1, maxMemoryMiB)
	whole(in, at+".gpus", v.GPUs, 0, maxGPUs)
	in.Text(at+".gpuModel", v.GPUModel, 0, 128)
	if v.Isolation != lifecycle.IsolationNamespace && v.Isolation != lifecycle.IsolationProcess {
		in.Bad(at+".isolation", "must be NAMESPACE or PROCESS")
	}
	place(in, at+".region", v.Region)
	place(in, at+".sku", v.SKU)
	in.Text(at+".kernel", v.Kernel, 0, 128)
	var labels map[string]any
	if len(v.Labels) > maxLabels || len(v.Labels) > 0 && json.Unmarshal(v.Labels, &labels) != nil || holdsNUL(labels) {
		in.Bad(at+".labels", "must be an object of at most %d bytes, without NUL characters", maxLabels)
	}
	if v.Walls != nil {
		checkWalls(in, at+".walls", v.Walls)
	}
	if v.Devices != nil {
		v.checkDevices(in, at+".devices")
	}
	checkStorage(in, at+".storage", v.Storage)
}

func whole(in *check.Input, path string, value, least, most int) {
	if value < least || value > most {
		in.Bad(path, "must be %d to %d", least, most)
	}
}

func place(in *check.Input, path, value string) {
	if value != "" && !placePattern.MatchString(value) {
		in.Bad(path, "must be letters, digits, dot, dash and underscore, at most 64")
	}
}

func hostName(in *check.Input, path, value string) {
	if len(value) > 253 || !namePattern.MatchString(value) {
		in.Bad(path, "must be a host name in lower case")
	}
}

// address refuses what is not an IP address that other machines can reach.
func address(in *check.Input, path, value string) {
	ip, err := netip.ParseAddr(value)
	if err != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
		in.Bad(path, "must be an IP address at which other nodes reach this node")
	}
}

func sealingKey(in *check.Input, path, value string) {
	if raw, err := base64.StdEncoding.DecodeString(value); err != nil || len(raw) != sealingBytes {
		in.Bad(path, "must be the base64 of a public key of %d bytes", sealingBytes)
	}
}

// holdsNUL reports whether a document holds text with a NUL, which PostgreSQL cannot store.
func holdsNUL(value any) bool {
	switch value := value.(type) {
	case string:
		for _, r := range value {
			if r == 0 {
				return true
			}
		}
	case []any:
		for _, element := range value {
			if holdsNUL(element) {
				return true
			}
		}
	case map[string]any:
		for name, element := range value {
			if holdsNUL(name) || holdsNUL(element) {
				return true
			}
		}
	}
	return false
}
