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

// accountAction is the name, by convention, of an action of apps with an SSH server of their own. It prepares the
// caller's account there, and returns the user to log in as. What an account is, the app defines.
const accountAction = "ssh.account"

// admit has the app make the caller's account ready, where the place is a server of the app's own and the app has the
// action. It notes the user to log in as, which stays as it is for other apps.
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
		return fmt.Errorf("action %s of %s does not name a user to log in as", accountAction, p.name)
	}
	p.account = said.User
	return nil
}

// user returns the user to log in as where the command line names no one.
func (p *place) user() string {
	if p.account != "" {
		return p.account
	}
	return "root"
}
