package capacity

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// usage returns the commands about what is metered.
func usage(t *command.Tool) *cobra.Command {
	return command.Group("usage", "Metered usage of the project", sumUsage(t), listUsage(t), usageSources(t),
		quarantine(t))
}

// chosen adds the flags that choose usage, and returns the filter that they fill.
func chosen(cmd *cobra.Command) func(project string) gql.UsageFilter {
	var instance, meter string
	cmd.Flags().StringVar(&instance, "instance", "", "only of this instance, by its id")
	cmd.Flags().StringVar(&meter, "meter", "", "only of this meter, such as gpu_seconds")
	return func(project string) gql.UsageFilter {
		filter := gql.UsageFilter{ProjectId: project}
		if instance != "" {
			filter.InstanceId = &instance
		}
		if meter != "" {
			filter.Meter = &meter
		}
		return filter
	}
}

// sumUsage returns the command that adds up.
func sumUsage(t *command.Tool) *cobra.Command {
	var hourly bool
	var filter func(string) gql.UsageFilter
	cmd := command.Verb(t, "sum", "Add up the project's usage by meter and by who bears it", sumTable.View,
		func(ctx context.Context, _ []string) ([]gql.UsageSum, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			answer, err := gql.SumUsage(ctx, t, filter(project), hourly)
			return answer.UsageSums, err
		})
	filter = chosen(cmd)
	cmd.Flags().BoolVar(&hourly, "hourly", false, "one sum for each hour")
	return cmd
}

// listUsage returns the command that lists records.
func listUsage(t *command.Tool) *cobra.Command {
	var filter func(string) gql.UsageFilter
	cmd := command.Pages(t, "list", "List the project's usage records, newest first", recordTable, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.UsageRecordPage, error) {
			answer, err := gql.ListUsage(ctx, t, filter(project), first, after)
			return &answer.UsageRecords, err
		})
	filter = chosen(cmd)
	return cmd
}

// usageSources returns the command that lists how far usage is recorded.
func usageSources(t *command.Tool) *cobra.Command {
	return command.Verb(t, "sources", "List where usage comes from, and how far it is recorded", sourceTable.View,
		func(ctx context.Context, _ []string) ([]gql.UsageSource, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			answer, err := gql.ListUsageSources(ctx, t, project)
			return answer.UsageSources, err
		})
}

// quarantine returns the command that lists what was not taken.
func quarantine(t *command.Tool) *cobra.Command {
	var all bool
	cmd := command.Pages(t, "quarantine", "List usage records that were not accepted, newest first", quarantineTable,
		func(ctx context.Context, args []string) (string, error) {
			if all {
				return "", nil
			}
			return t.InProject(ctx, args)
		},
		func(ctx context.Context, project string, first int, after string) (*gql.QuarantinedUsagePage, error) {
			answer, err := gql.ListQuarantinedUsage(ctx, t, project, first, after)
			return &answer.UsageQuarantine, err
		})
	cmd.Flags().BoolVar(&all, "all", false, "of every project, for operators")
	return cmd
}

// text is an optional text; empty for none.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

var sumTable = command.Table[gql.UsageSum]{
	Heading: []string{"METER", "HOUR", "QUANTITY", "UNIT", "BASIS", "BORNE BY", "REASON"},
	Row: func(sum *gql.UsageSum) []string {
		return []string{sum.Meter, render.Time(sum.Hour), sum.Quantity, sum.Unit, string(sum.Basis),
			string(sum.BorneBy), text(sum.BorneReason)}
	},
}

var recordTable = command.Table[gql.UsageRecord]{
	Heading: []string{"ID", "FROM", "TO", "METER", "QUANTITY", "UNIT", "SOURCE", "MEMBER", "BORNE BY"},
	Row: func(record *gql.UsageRecord) []string {
		return []string{record.UsageId, render.Time(&record.FromAt), render.Time(&record.ToAt), record.Meter,
			record.Quantity, record.Unit, record.Source, text(record.MemberId), string(record.BorneBy)}
	},
}

var sourceTable = command.Table[gql.UsageSource]{
	Heading: []string{"SOURCE", "BASIS", "RECORDED TO", "PROVED TO", "LAST ERROR"},
	Row: func(source *gql.UsageSource) []string {
		return []string{source.Source, string(source.Basis), render.Time(source.RecordedTo),
			render.Time(source.ProvedTo), source.LastError}
	},
}

var quarantineTable = command.Table[gql.QuarantinedUsage]{
	Heading: []string{"ID", "RECEIVED", "SOURCE", "METER", "RECORD", "CODE", "MESSAGE"},
	Row: func(record *gql.QuarantinedUsage) []string {
		return []string{record.Id, render.Time(&record.CreatedAt), record.Source, record.Meter, record.UsageId,
			record.Code, record.Message}
	},
}
