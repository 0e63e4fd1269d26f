// Command plugin is a stand-in of NVIDIA's device plugin, and says so: it offers the kubelet the devices that
// SIMULATED_GPUS names, by commas, as nvidia.com/gpu. No such device is on the node; a container is told which one it has
// by NVIDIA_VISIBLE_DEVICES, as with the real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	socket   = "nvidia-gpu-standin.sock"
)

func main() {
	fmt.Println("a stand-in of NVIDIA's device plugin: its devices are simulated")
	if err := run(strings.Split(os.Getenv("SIMULATED_GPUS"), ",")); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

func run(ids []string) error {
	path := filepath.Join(api.DevicePluginPath, socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{ids: ids})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := register(); err != nil {
		return err
	}
	// A kubelet that starts again deletes the socket; the pod is started again then.
	for {
		select {
		case err := <-failed:
			return err
		case <-time.After(2 * time.Second):
			if _, err := os.Stat(path); err != nil {
				return err
			}
		}
	}
}

func register() error {
	conn, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(conn).Register(ctx,
		&api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: resource})
	return err
}

type plugin struct {
	api.UnimplementedDevicePluginServer

	ids []string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	var devices []*api.Device
	for _, id := range p.ids {
		devices = append(devices, &api.Device{ID: id, Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	var answer api.AllocateResponse
	for _, container := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return &answer, nil
}
