package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Charge is a volume that a node's agent looks after.
type Charge struct {
	ID ids.ID `json:"id"`
	// Storage is the node's name for what it lies in.
	Storage string `json:"storage"`
	// SizeBytes is how much it is to hold.
	SizeBytes float64 `json:"sizeBytes"`
	// Gone is true of one that the agent deletes, and proves to be deleted.
	Gone bool `json:"gone"`
}

// Charges are the volumes that a node's agent looks after.
type Charges struct {
	// Version changes with the volumes: 32 hexadecimal digits.
	Version string
	Volumes []Charge
}

// Versioned returns volumes with the version that belongs to them.
func Versioned(volumes []Charge) *Charges {
	text, _ := json.Marshal(volumes) // of plain values, which cannot fail
	sum := sha256.Sum256(text)
	return &Charges{Version: hex.EncodeToString(sum[:16]), Volumes: volumes}
}

// Finding is what a node's agent found of a volume.
type Finding string

// The findings.
const (
	// Present is a volume that is there and was measured.
	Present Finding = "PRESENT"
	// Gone is one of which nothing is left on the node's storage.
	Gone Finding = "GONE"
	// Busy is one that could not be measured, grown or deleted now.
	Busy Finding = "BUSY"
)

// Values lists every Finding as it is published.
func (Finding) Values() []string { return []string{string(Present), string(Gone), string(Busy)} }
