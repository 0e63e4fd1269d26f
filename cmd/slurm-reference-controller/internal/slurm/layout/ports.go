package layout

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxWorkers is how many workers a port block has room for, beside slurmctld and slurmdbd.
	MaxWorkers = PortBlock - 2
	// portFirst is the first port of the first block.
	portFirst = 21000
	// PortBlock is the number of ports of a block.
	PortBlock = 128
	// portBlocks is the number of blocks: all lie below the ports that Linux uses for outgoing connections.
	portBlocks = 88
	// minMemory is what a worker is given when its node says nothing, in MiB.
	minMemory = 256
)

// WorkerPort is where a worker's slurmd listens.
func WorkerPort(base, slot int) int { return base + 1 + slot }

// accountingPort is where slurmdbd listens: the block's last.
func accountingPort(base int) int { return base + PortBlock - 1 }

// portCandidates lists the bases of the blocks in the order in which a cluster tries them: its own
// order, so that two clusters created at once rarely want the same.
func portCandidates(instanceID string) []int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(instanceID))
	start := int(hash.Sum32() % portBlocks)
	bases := make([]int, portBlocks)
	for i := range bases {
		bases[i] = portFirst + (start+i)%portBlocks*PortBlock
	}
	return bases
}

// FreeBlock is the first block in which nothing listens.
func FreeBlock(instanceID string, listening []int) (int, error) {
	for _, base := range portCandidates(instanceID) {
		if !slices.ContainsFunc(listening, func(port int) bool { return port >= base && port < base+PortBlock }) {
			return base, nil
		}
	}
	return 0, errors.New("no block of ports is free")
}

// ParsePorts reads local ports in hexadecimal, one a line, as /proc/net/tcp has them.
func ParsePorts(text string) ([]int, error) {
	var ports []int
	for _, word := range strings.Fields(text) {
		port, err := strconv.ParseUint(word, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("listening port %q is not hexadecimal", word)
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}
