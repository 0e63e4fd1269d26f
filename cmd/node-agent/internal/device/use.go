package device

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// useTimeout bounds the vendor's program: a measurement that comes later is of no use.
const useTimeout = 5 * time.Second

// useFields are the columns that nvidia-smi is to print.
const useFields = "uuid,utilization.gpu,memory.used,memory.total"

// Use is what a GPU does; NaN is what its vendor does not say.
type Use struct {
	// Busy is the fraction of the last moments in which it was at work.
	Busy float64
	// Memory and MemoryTotal are in bytes.
	Memory, MemoryTotal float64
}

// Uses returns what the GPUs do, by their identities: NVIDIA's by the vendor's program, AMD's by what the kernel
// publishes. One that is not measured is left out.
func (s Source) Uses(ctx context.Context) map[string]Use {
	uses := make(map[string]Use)
	s.nvidiaUses(ctx, uses)
	nodes, _ := filepath.Glob(s.at("/sys/class/drm", renderPrefix+"*"))
	for _, node := range nodes {
		if id := amdIdentity(s.word(node, "device", "unique_id")); id != "" {
			uses[id] = Use{
				Busy:        amount(s.word(node, "device", "gpu_busy_percent")) / 100,
				Memory:      amount(s.word(node, "device", "mem_info_vram_used")),
				MemoryTotal: amount(s.word(node, "device", "mem_info_vram_total")),
			}
		}
	}
	return uses
}

func (s Source) nvidiaUses(ctx context.Context, uses map[string]Use) {
	if s.SMI == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, s.SMI, "--query-gpu="+useFields,
		"--format=csv,noheader,nounits") // #nosec G204 -- the operator's own program
	command.WaitDelay = time.Second
	out, err := command.Output()
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		columns := strings.Split(lines.Text(), ",")
		if len(columns) != strings.Count(useFields, ",")+1 {
			continue
		}
		uses[strings.TrimSpace(columns[0])] = Use{Busy: amount(columns[1]) / 100,
			Memory: amount(columns[2]) * (1 << 20), MemoryTotal: amount(columns[3]) * (1 << 20)}
	}
}

// amount reads a number; NaN where the vendor says such as [N/A].
func amount(text string) float64 {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || value < 0 {
		return math.NaN()
	}
	return value
}
