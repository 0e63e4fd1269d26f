package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// accountAction is the name, by convention, of the action by which an app whose own server is logged in to makes the
// caller's account ready, and says who to log in as. What an account is there is the app's.
const accountAction = "ssh.account"

// admit has the app make the caller's account ready, where the place is a server of the app's own and the app has the
// action. Who to log in as is noted; it stays as it is for other apps.
func (p *place) admit(ctx context.Context, t *command.Tool) error {
	if p.endpoint == "" {
		return nil
	}
	found, err := gql.GetInstance(ctx, t, p.instance)
	if err != nil {
		return err
	}
	named := func(one gql.ActionSpec) bool { return one.Name == accountAction }
	if !slices.ContainsFunc(found.Instance.Actions, named) {
		return nil
	}
	answer, err := gql.InvokeAction(ctx, t, gql.InvokeActionInput{InstanceId: p.instance, Action: accountAction,
		Input: json.RawMessage("{}"), IdempotencyKey: client.NewKey()})
	if err != nil {
		return err
	}
	var said struct {
		User string `json:"user"`
	}
	if err := json.Unmarshal(answer.InvokeAction.Output, &said); err != nil || said.User == "" {
		return fmt.Errorf("action %s of %s does not say who to log in as", accountAction, p.name)
	}
	p.account = said.User
	return nil
}

// user is who is logged in as where nobody is given.
func (p *place) user() string {
	if p.account != "" {
		return p.account
	}
	return "root"
}
