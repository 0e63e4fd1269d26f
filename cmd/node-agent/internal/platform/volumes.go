package platform

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Volumes reads the volumes that the node looks after, waiting for another version than the known one.
func (c *Client) Volumes(ctx context.Context, who Credentials, known string, wait time.Duration) (view gql.NodeVolumes,
	err error) {
	err = c.call(who, "read volumes", func(api *client.Client) error {
		answer, err := gql.ReadNodeVolumes(ctx, api, known, int(wait.Seconds()))
		if err == nil {
			view = answer.NodeVolumes
		}
		return err
	})
	return view, err
}

// ReportVolumes says what the node found of volumes.
func (c *Client) ReportVolumes(ctx context.Context, who Credentials, reports []gql.VolumeReportInput) error {
	return c.call(who, "report volumes", func(api *client.Client) error {
		_, err := gql.ReportVolumes(ctx, api, gql.ReportVolumesInput{Volumes: reports})
		return err
	})
}

// Unknown reports whether the platform does not know the request, because it is older than the agent.
func Unknown(err error) bool { return client.CodeOf(err) == client.CodeDocumentInvalid }
