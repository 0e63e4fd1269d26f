package daemons

import (
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// gpusFile holds the device nodes of a worker's GPUs, one a line, in the order in which Slurm numbers them.
const gpusFile = "/etc/slurm/gpus"

// taskProlog sets each task's GPUs. Slurm writes their numbers among those of the worker into the variable, while the
// vendor's library reads places among all that the member sees: workers on one node see each other's. So the numbers
// become identities where NVIDIA's driver publishes them, and else places. Other values stay as they are.
const taskProlog = `#!/bin/sh
identity() {
    grep -ls "Device Minor:[[:space:]]*${1##*/nvidia}\$" /proc/driver/nvidia/gpus/*/information |
        xargs -r sed -n 's/^GPU UUID:[[:space:]]*//p'
}
seen() { ls -1v /dev/nvidia[0-9]* /dev/dri/renderD[0-9]* 2> /dev/null; }
for name in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES; do
    eval "numbers=\$$name"
    case $numbers in '' | *[!0-9,]*) continue ;; esac
    said=
    for number in $(echo "$numbers" | tr , ' '); do
        path=$(sed -n "$((number + 1))p" ` + gpusFile + ` 2> /dev/null)
        test -n "$path" || exit 0
        one=$(identity "$path")
        test -n "$one" || one=$(($(seen | grep -nxF "$path" | cut -d : -f 1) - 1))
        said="$said${said:+,}$one"
    done
    echo "export $name=$said"
done
`

// WorkerFiles are what a worker reads beside what slurmctld sends it.
func WorkerFiles(worker layout.Worker) []Step {
	var gpus strings.Builder
	for _, path := range worker.Devices {
		gpus.WriteString(path + "\n")
	}
	return []Step{
		{"node-name", adapter.WriteFile{Path: nodeNameFile, Mode: "0644", Content: worker.Name() + "\n"}},
		{"gpus", adapter.WriteFile{Path: gpusFile, Mode: "0644", Content: gpus.String()}},
		TaskProlog(),
	}
}

// TaskProlog writes the task prolog of a worker.
func TaskProlog() Step {
	return Step{"task-prolog", adapter.WriteFile{Path: layout.TaskPrologPath, Mode: "0755", Content: taskProlog}}
}
