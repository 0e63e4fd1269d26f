package triage

import (
	"fmt"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/triage/links"
)

// evidence lists the rows that a report rests on, and where to see each.
func evidence(rows *Rows, report *Report) []*Evidence {
	all := append([]*Evidence{}, found(rows, report)...)
	for _, one := range rows.Tasks {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfTask, ID: pointer(one.ID), At: one.CreatedAt,
			What: one.Kind, State: one.State, Message: one.Message, Link: page("workloads", one.InstanceID)})
	}
	for _, one := range rows.Events {
		link := page("workloads", one.AppInstanceID())
		if link == "" {
			link = "/allocations"
		}
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfEvent, ID: pointer(one.ID), At: one.OccurredAt,
			What: one.Type, Message: one.Message, Link: link})
	}
	for _, one := range rows.Audits {
		state := "ALLOWED"
		if one.Code != "" {
			state = one.Code
		}
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfAudit, ID: pointer(one.ID), At: one.At, What: one.Action,
			State: state, Message: one.Reason, Link: "/audit?correlation=" + url.QueryEscape(one.Correlation)})
	}
	return append(all, outside(report)...)
}

// found are the blockers, the steps and the call to the adapter: they are seen with their operation.
func found(rows *Rows, report *Report) (all []*Evidence) {
	blockers, where := rows.Unwell, ""
	if rows.Operation != nil {
		where = page("operations", rows.Operation.ID)
		if rows.Operation.EndedAt == nil {
			blockers = rows.Blockers
		}
	}
	for _, one := range blockers {
		link := where
		if (rows.Operation == nil || report.Stands == lifecycle.TriageUnwell) && report.InstanceID != nil {
			link = page("workloads", *report.InstanceID)
		}
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfBlocker, At: one.Since, What: one.Code,
			Message: one.Message, Link: link})
	}
	for _, one := range rows.Steps {
		if one.StartedAt != nil {
			all = append(all, &Evidence{Kind: lifecycle.EvidenceOfStep, At: *one.StartedAt, What: one.Name,
				State: string(one.State), Message: one.Message, Link: where})
		}
	}
	if call := rows.Call; call != nil {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfCall, At: dispatched(rows, report), State: call.State,
			Link: where, What: fmt.Sprintf("dispatch %d to %s", call.Attempt, call.Adapter), Message: call.Message})
	}
	return all
}

// stepDispatch is the step in which an adapter is sent an operation.
const stepDispatch = "dispatch"

// dispatched returns when the operation was first sent to the adapter; without such a step, when it was requested.
func dispatched(rows *Rows, report *Report) time.Time {
	for _, one := range rows.Steps {
		if one.Name == stepDispatch && one.StartedAt != nil {
			return *one.StartedAt
		}
	}
	return report.At
}

// outside returns the evidence outside of the rows: the operation's trace, and the lines of all logs.
func outside(report *Report) (all []*Evidence) {
	address := func(name string) string { return linked(report.Links, name) }
	if report.TraceID != "" {
		all = append(all, &Evidence{Kind: lifecycle.EvidenceOfTrace, At: report.At, What: report.TraceID,
			TraceID: report.TraceID,
			Message: "the operation's whole trace, sent when it ends and again by appctl trace emit",
			Link:    address("trace")})
	}
	return append(all, &Evidence{Kind: lifecycle.EvidenceOfLogs, At: report.At, What: logQuery(report.CorrelationID),
		Message: "the lines of servers, adapters and agents that belong to it", Link: address("logs")})
}

// logQuery returns the LogQL query for the lines with a correlation id; in a collector without LogQL, search for the
// text between the quotes.
func logQuery(correlation string) string {
	return fmt.Sprintf("{service_name=~\".+\"} |= %q", correlation)
}

func linked(all []links.Link, name string) string {
	for _, one := range all {
		if one.Name == name {
			return one.URL
		}
	}
	return ""
}

// page is a path of the console; empty without an object.
func page(noun string, id ids.ID) string {
	if id == "" {
		return ""
	}
	return "/" + noun + "/" + string(id)
}

func pointer(id ids.ID) *ids.ID { return &id }
