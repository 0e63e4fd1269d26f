package client_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// A launch that can be sent again without launching twice, followed to its end.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	c, err := client.New(os.Getenv("GPUAAS_URL"), client.Options{Token: os.Getenv("GPUAAS_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{
		ProjectId: os.Getenv("GPUAAS_PROJECT"), AppSlug: "hello-cluster", Name: "demo",
		AllocationIds: []string{os.Getenv("GPUAAS_ALLOCATION")},
		Components:    []gql.ComponentInput{{Key: "worker", Count: 2}}, Config: []byte(`{"greeting":"hello"}`),
		IdempotencyKey: "pipeline-4711",
	})
	if refused, ok := client.AsError(err); ok {
		for _, reason := range refused.Reasons {
			fmt.Println(reason.Path, reason.Message)
		}
		return
	}
	operation, err := c.WaitOperation(ctx, launch.LaunchInstance.Operation.Id, func(op *gql.OperationDetail) {
		fmt.Println(op.Percent, op.Message)
	})
	fmt.Println(operation, err)
}

// A timeline from its beginning, over reconnects and restarts of the server, each event once.
func ExampleClient_Timeline() {
	c, err := client.New(os.Getenv("GPUAAS_URL"), client.Options{Token: os.Getenv("GPUAAS_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range c.Timeline(context.Background(), os.Getenv("GPUAAS_INSTANCE"), "") {
		if client.CodeOf(err) == client.CodeCursorExpired {
			fmt.Println("begin again without a cursor")
		}
		if err != nil {
			return
		}
		fmt.Println(event.Seq, event.Type, event.Message)
		if event.Type == "apps.instance.deleted" {
			break
		}
	}
}
