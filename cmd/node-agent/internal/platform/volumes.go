package platform

import (
	"context"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Storage is what a node serves volumes from.
type Storage struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	TotalBytes   int64  `json:"totalBytes"`
	FreeBytes    int64  `json:"freeBytes"`
	SizeEnforced bool   `json:"sizeEnforced"`
	Reason       string `json:"reason"`
}

// Inventory is what a node has, with its storage. A platform that knows no volumes takes no storage.
type Inventory struct {
	gql.NodeInventoryInput
	Storage []Storage `json:"storage,omitempty"`
}

// Heartbeat is what a node says when it is alive.
type Heartbeat struct {
	gql.NodeHeartbeatInput
	Inventory *Inventory `json:"inventory,omitempty"`
}

// Volume is a volume that a node's agent looks after.
type Volume struct {
	ID      string `json:"id"`
	Storage string `json:"storage"`
	// SizeBytes is a whole number, as all of the API's bytes.
	SizeBytes float64 `json:"sizeBytes"`
	// Gone is true of one that the agent deletes.
	Gone bool `json:"gone"`
}

// Volumes are those that a node's agent looks after.
type Volumes struct {
	// Version changes with everything else.
	Version string   `json:"version"`
	Volumes []Volume `json:"volumes"`
}

// The states of a volume in reports.
const (
	VolumePresent = "PRESENT"
	VolumeGone    = "GONE"
	VolumeBusy    = "BUSY"
)

// VolumeReport is what an agent found of a volume.
type VolumeReport struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	UsedBytes int64  `json:"usedBytes"`
	Message   string `json:"message"`
}

// What the agent asks of volumes. A platform without volumes refuses these texts and no others.
const (
	volumesText = `query NodeVolumes($known: String!, $waitSeconds: Int!) {
	nodeVolumes(known: $known, waitSeconds: $waitSeconds) { version volumes { id storage sizeBytes gone } }
}`
	reportText = `mutation ReportVolumes($input: ReportVolumesInput!) { reportVolumes(input: $input) }`
)

// Volumes reads the volumes that the node looks after, waiting for another version than the known one.
func (c *Client) Volumes(ctx context.Context, who Credentials, known string, wait time.Duration) (Volumes, error) {
	var answer struct {
		NodeVolumes Volumes `json:"nodeVolumes"`
	}
	request := &graphql.Request{OpName: "NodeVolumes", Query: volumesText,
		Variables: map[string]any{"known": known, "waitSeconds": int(wait.Seconds())}}
	err := c.call(who, "read volumes", func(api *client.Client) error {
		return api.MakeRequest(ctx, request, &graphql.Response{Data: &answer})
	})
	return answer.NodeVolumes, err
}

// ReportVolumes says what the node found of volumes.
func (c *Client) ReportVolumes(ctx context.Context, who Credentials, reports []VolumeReport) error {
	var answer struct{}
	input := map[string]any{"volumes": reports}
	request := &graphql.Request{OpName: "ReportVolumes", Query: reportText, Variables: map[string]any{"input": input}}
	return c.call(who, "report volumes", func(api *client.Client) error {
		return api.MakeRequest(ctx, request, &graphql.Response{Data: &answer})
	})
}

// Unknown reports whether the platform does not know what it was asked: it is older than the agent.
func Unknown(err error) bool { return client.CodeOf(err) == client.CodeDocumentInvalid }

// Heartbeat says that the node is alive, and answers when that was by the platform's clock.
func (c *Client) Heartbeat(ctx context.Context, who Credentials, input Heartbeat) (at time.Time, err error) {
	var answer gql.NodeHeartbeatResponse
	request := &graphql.Request{OpName: "NodeHeartbeat", Query: gql.NodeHeartbeat_Operation,
		Variables: map[string]any{"input": input}}
	err = c.call(who, "heartbeat", func(api *client.Client) error {
		return api.MakeRequest(ctx, request, &graphql.Response{Data: &answer})
	})
	if err == nil && answer.NodeHeartbeat.LastSeenAt != nil {
		at = *answer.NodeHeartbeat.LastSeenAt
	}
	return at, err
}
