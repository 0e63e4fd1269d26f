package device

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// smiFields are the columns that nvidia-smi is to print.
const smiFields = "uuid,pci.bus_id,name,memory.total"

// asked lists NVIDIA's GPUs by the vendor's program, which uses the vendor's library.
func (s Source) asked(ctx context.Context) []gql.DeviceInput {
	if s.SMI == "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, s.SMI, "--query-gpu="+smiFields,
		"--format=csv,noheader,nounits").Output() // #nosec G204 -- the operator's own program
	if err != nil {
		return nil
	}
	var found []gql.DeviceInput
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		columns := strings.Split(lines.Text(), ",")
		if len(columns) != strings.Count(smiFields, ",")+1 {
			return nil
		}
		pci := pciAddress(columns[1])
		minor, ok := s.minor(pci)
		if !ok {
			minor = len(found) // without the driver's own files the vendor numbers nodes as it lists devices
		}
		memory, _ := strconv.Atoi(strings.TrimSpace(columns[3])) // 0 where the vendor says [N/A]
		found = append(found, gql.DeviceInput{
			Uuid: strings.TrimSpace(columns[0]), PciAddress: pci, Model: strings.TrimSpace(columns[2]),
			MemoryMiB: memory,
			Minor:     minor, Path: nvidiaPath(minor),
		})
	}
	return identified(found)
}

// information is what NVIDIA's driver publishes of each GPU.
const information = "/proc/driver/nvidia/gpus"

// nvidia lists NVIDIA's GPUs by the driver's own files.
func (s Source) nvidia(context.Context) []gql.DeviceInput {
	files, _ := filepath.Glob(s.at(information, "*", "information"))
	var found []gql.DeviceInput
	for _, file := range files {
		fields := fieldsOf(file)
		minor, err := strconv.Atoi(fields["Device Minor"])
		if err != nil {
			return nil
		}
		found = append(found, gql.DeviceInput{
			Uuid: fields["GPU UUID"], PciAddress: pciAddress(filepath.Base(filepath.Dir(file))), Model: fields["Model"],
			Minor: minor, Path: nvidiaPath(minor),
		})
	}
	slices.SortFunc(found, func(a, b gql.DeviceInput) int { return a.Minor - b.Minor })
	return identified(found)
}

// minor is the number of a GPU's device node.
func (s Source) minor(pci string) (int, bool) {
	minor, err := strconv.Atoi(fieldsOf(s.at(information, pci, "information"))["Device Minor"])
	return minor, err == nil
}

// fieldsOf reads a file of lines "name: value".
func fieldsOf(path string) map[string]string {
	raw, err := os.ReadFile(path) // #nosec G304 -- the driver's own file
	if err != nil {
		return nil
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields
}
