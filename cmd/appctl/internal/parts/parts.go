// Package parts shows what many answers share: names of members and nodes, money, actions, blockers, work, and the
// history of what was promoted.
package parts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// MemberName returns a member's component and number, such as worker/0.
func MemberName(component string, index int) string { return fmt.Sprintf("%s/%d", component, index) }

// MemberStatus returns a member's status, and whether it is cordoned.
func MemberStatus(status gql.MemberStatus, cordoned bool) string {
	return string(status) + render.If(cordoned, ", cordoned")
}

// NodeName returns a node's name; empty for none.
func NodeName(node *gql.NodeRef) string {
	if node == nil {
		return ""
	}
	return node.Name
}

// AllocationName returns an allocation's name; empty for none.
func AllocationName(allocation *gql.AllocationRef) string {
	if allocation == nil {
		return ""
	}
	return allocation.Name
}

// Age returns a number of seconds as a duration.
func Age(seconds int) string { return (time.Duration(seconds) * time.Second).String() }

// Money returns an amount with its currency; empty for none.
func Money(money *gql.Money) string {
	if money == nil {
		return ""
	}
	return money.Amount + " " + money.Currency
}

// Progress returns an operation on one line; empty for none.
func Progress(op *gql.Operation) string {
	if op == nil {
		return ""
	}
	return fmt.Sprintf("%s %s, %s, %d%%", op.Id, op.Kind, op.State, op.Percent)
}

// Scope returns where a role is held.
func Scope(project, tenant *string) string {
	return cmp.Or(render.Text(project), render.Text(tenant), "platform")
}

// Reasons returns the messages of reasons on one line.
func Reasons(reasons []gql.Reason) string {
	var texts []string
	for _, reason := range reasons {
		texts = append(texts, reason.Message)
	}
	return strings.Join(texts, "; ")
}

// Stage returns how far something is trusted, and whether there is evidence for it.
func Stage(stage gql.Stage, evidence []byte) string {
	proven := len(evidence) > 0 && string(evidence) != "null"
	return string(stage) + render.If(proven, ", with evidence")
}

// Actions is the table of what an app can do for its users.
var Actions = command.Table[gql.ActionSpec]{
	Heading: []string{"NAME", "RISK", "PERMISSION KEY", "TITLE"},
	Row: func(action *gql.ActionSpec) []string {
		return []string{action.Name, string(action.Risk), action.PermissionKey, action.DisplayName}
	},
}

// Blockers is the table of what something waits for.
var Blockers = command.Table[gql.Blocker]{
	Heading: []string{"CODE", "OWNER", "ABOUT", "SINCE", "NEXT TRY", "CLEARED WITH", "MESSAGE"},
	Row: func(blocker *gql.Blocker) []string {
		return []string{
			blocker.Code, blocker.Owner, blocker.Subject, render.Time(&blocker.Since), render.Time(blocker.NextRetryAt),
			blocker.PermissionKey, blocker.Message,
		}
	},
}

// Work is the table of work that runs on members.
var Work = command.Table[gql.Work]{
	Heading: []string{"KIND", "ID", "NAME", "MEMBER", "OWNER", "SINCE", "MESSAGE"},
	Row: func(work *gql.Work) []string {
		return []string{work.Kind, work.WorkId, work.Name, work.MemberId, work.Owner, render.Time(work.Since),
			work.Message}
	},
}

// Impact is the table of the projects that a control plane serves.
var Impact = command.Table[gql.ImpactedProject]{
	Heading: []string{"PROJECT", "NAME", "ATTACHED", "CAN USE IT", "ACTIONS IN 24 H"},
	Row: func(project *gql.ImpactedProject) []string {
		since := cmp.Or(render.Time(project.AttachedAt), "its own")
		return []string{
			project.ProjectId, project.DisplayName, since, fmt.Sprint(project.Subjects),
			fmt.Sprint(project.RecentActions),
		}
	},
}

// History is the table of the steps of an artifact or manifest, newest first.
var History = command.Table[gql.Promotion]{
	Heading: []string{"AT", "FROM", "TO", "BY", "WHY"},
	Row: func(step *gql.Promotion) []string {
		to := string(step.To) + render.Number(step.CanaryPercent, " %d %%")
		why := step.Reason
		if step.Override != "" {
			why += "; terms waived: " + step.Override
		}
		return []string{render.Time(&step.CreatedAt), string(step.From), to, step.Actor.Name, why}
	},
}

// Walls returns a member's profile and isolation class, as "SERVICE in CONTAINER".
func Walls(profile gql.MemberProfile, class *gql.IsolationClass) string {
	if class == nil {
		return string(profile)
	}
	return fmt.Sprintf("%s in %s", profile, *class)
}

// Access returns what members may do with a volume.
func Access(readOnly bool) string {
	if readOnly {
		return "read"
	}
	return "read and write"
}
