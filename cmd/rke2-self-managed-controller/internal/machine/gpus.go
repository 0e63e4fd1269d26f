package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// GPUResource is the resource by which pods request GPUs.
const GPUResource = "nvidia.com/gpu"

// gpuTemplate prints a line for each container that holds GPUs: its pod's uid, Node, start, and how many it holds; then
// when containers of the pod ended, where they did.
const gpuTemplate = `{{range .items}}{{$p := .}}{{range .spec.containers}}{{with .resources.limits}}` +
	`{{with index . "` + GPUResource + `"}}{{$p.metadata.uid}} {{$p.spec.nodeName}} {{$p.status.phase}} ` +
	`{{$p.status.startTime}} {{.}}{{range $p.status.containerStatuses}}{{with .state.terminated}} {{.finishedAt}}` +
	`{{end}}{{end}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}`

// GPUPods lists the pods that hold GPUs.
func GPUPods() adapter.RunCommand {
	return Kubectl("get", "pods", "-A", "-o", "go-template="+gpuTemplate)
}

// GPUPod is a pod that holds GPUs, or has held them.
type GPUPod struct {
	UID, Node string
	GPUs      int
	// Since is when its Node took it, and Ended when its last container ended: zero while it runs, and Since where it
	// has ended without a time.
	Since, Ended time.Time
}

// GPUPodsOf reads what GPUPods prints. Pods that no Node has taken yet hold nothing.
func GPUPodsOf(result adapter.TaskResult) (list []GPUPod) {
	at := map[string]int{}
	for line := range wholeLines(result) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		since, err := time.Parse(time.RFC3339, fields[3])
		count, countErr := strconv.Atoi(fields[4])
		if err != nil || countErr != nil || count <= 0 {
			continue
		}
		i, known := at[fields[0]]
		if !known {
			i, at[fields[0]] = len(list), len(list)
			list = append(list, GPUPod{UID: fields[0], Node: fields[1], Since: since.UTC()})
		}
		list[i].GPUs += count
		if fields[2] != "Succeeded" && fields[2] != "Failed" {
			continue
		}
		for _, field := range fields[5:] {
			if ended, err := time.Parse(time.RFC3339, field); err == nil && ended.After(list[i].Ended) {
				list[i].Ended = ended.UTC()
			}
		}
		if list[i].Ended.IsZero() { // a pod that was evicted does not say when: it holds nothing any more
			list[i].Ended = list[i].Since
		}
	}
	return list
}
