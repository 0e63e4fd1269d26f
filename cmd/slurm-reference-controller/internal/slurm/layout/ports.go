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
	// MaxWorkers is the number of workers whose ports fit in a block beside slurmctld's and
	// slurmdbd's.
	MaxWorkers = PortBlock - 2
	// portFirst is the first port of the first block.
	portFirst = 21000
	// PortBlock is the number of ports of a block.
	PortBlock = 128
	// portBlocks is the number of blocks: all lie below the ports that Linux uses for outgoing connections.
	portBlocks = 88
	// minMemory is a worker's memory when its node reports none, in MiB.
	minMemory = 256
)

// WorkerPort returns the port of a worker's slurmd.
func WorkerPort(base, slot int) int { return base + 1 + slot }

// accountingPort returns slurmdbd's port: the last of the block.
func accountingPort(base int) int { return base + PortBlock - 1 }

// portCandidates returns the first ports of the blocks in the order in which a cluster tries them.
// The order differs by instance, so that two clusters that are created at the same time rarely want
// the same block.
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

// FreeBlock returns the first port of the first block in which nothing listens.
func FreeBlock(instanceID string, listening []int) (int, error) {
	for _, base := range portCandidates(instanceID) {
		if !slices.ContainsFunc(listening, func(port int) bool { return port >= base && port < base+PortBlock }) {
			return base, nil
		}
	}
	return 0, errors.New("no block of free ports is left")
}

// ParsePorts reads local ports in hexadecimal, one a line, as /proc/net/tcp writes them.
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
