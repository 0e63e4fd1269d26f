package members

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// topEvery is how often a node measures, and so how often there is something new.
const topEvery = 10 * time.Second

// orders are what members can be sorted by, each the highest first.
var orders = map[string]func(*gql.MemberUsage) float64{
	"cpu":    func(u *gql.MemberUsage) float64 { return value(u.Cpu) },
	"memory": func(u *gql.MemberUsage) float64 { return value(u.MemoryBytes) },
	"net":    func(u *gql.MemberUsage) float64 { return value(u.NetReceivedPerSecond) + value(u.NetSentPerSecond) },
	"disk":   func(u *gql.MemberUsage) float64 { return value(u.DiskReadPerSecond) + value(u.DiskWrittenPerSecond) },
	"gpu":    func(u *gql.MemberUsage) float64 { return value(u.Gpu) },
}

// value is 0 for what is not known.
func value(number *float64) float64 {
	if number == nil {
		return 0
	}
	return *number
}

// Top returns the command that shows what members use.
func Top(t *command.Tool) *cobra.Command {
	var order string
	var watch bool
	cmd := t.Command("top [INSTANCE]", "Show what members use: CPU, memory, network, disk and GPUs",
		func(ctx context.Context, args []string) error {
			if order != "" && orders[order] == nil {
				return command.Usagef("--sort %q: must be cpu, memory, net, disk or gpu", order)
			}
			project, instance, err := whose(ctx, t, args)
			for err == nil {
				if err = showUsage(ctx, t, project, instance, order, watch); err != nil || !watch {
					break
				}
				select {
				case <-time.After(cmp.Or(t.Env.StandStill, topEvery)):
				case <-ctx.Done():
					return nil
				}
			}
			return err
		})
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.Long = `Show what each member of an instance uses now, or each member of the project: CPU and memory with their
limits, network and disk traffic a second, and GPUs. Nodes measure every 10 seconds. A dash is unknown: a rate before
the second measurement, the network of a member without one of its own, simulated GPUs. A measurement older than a
minute is shown with its time.`
	cmd.Flags().StringVar(&order, "sort", "", "sort by cpu, memory, net, disk or gpu, highest first (default by name)")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep running and show it again every 10 seconds")
	command.CompleteWith(cmd, "sort", "cpu", "memory", "net", "disk", "gpu")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// whose returns the project, and the instance if one is named.
func whose(ctx context.Context, t *command.Tool, args []string) (project, instance string, err error) {
	if len(args) == 0 {
		if _, err = t.Connect(); err == nil {
			project, err = t.ProjectID(ctx)
		}
		return project, "", err
	}
	found, err := lookup.InstanceDetail(ctx, t, args[0])
	if err != nil {
		return "", "", err
	}
	return found.ProjectId, found.Id, nil
}

// showUsage shows what members use now.
func showUsage(ctx context.Context, t *command.Tool, project, instance, order string, again bool) error {
	answer, err := gql.GetMemberUsage(ctx, t, project, instance)
	if err != nil {
		return err
	}
	found := answer.MemberUsage
	if by := orders[order]; by != nil {
		slices.SortStableFunc(found, func(a, b gql.MemberUsage) int { return cmp.Compare(by(&b), by(&a)) })
	}
	if again && t.AsJSON() {
		return render.JSONLine(t.Env.Stdout, found)
	}
	if again && !t.Quiet {
		fmt.Fprintln(t.Env.Stdout, time.Now().Format(time.TimeOnly))
	}
	return t.Show(usageTable.View(found))
}

var usageTable = command.Table[gql.MemberUsage]{
	Heading: []string{"MEMBER", "CPU", "MEMORY", "NET IN", "NET OUT", "DISK READ", "DISK WRITE", "GPUS", "GPU",
		"GPU MEMORY", "MEASURED"},
	Row: func(u *gql.MemberUsage) []string {
		gpus := ""
		switch {
		case u.GpusSimulated:
			gpus = strconv.Itoa(u.Gpus) + " simulated"
		case u.Gpus > 0:
			gpus = strconv.Itoa(u.Gpus)
		}
		when := "now"
		if u.Stale {
			when = render.Time(u.At)
		}
		return []string{
			fmt.Sprintf("%s/%s/%d", u.InstanceName, u.ComponentKey, u.Index), share(u.Cpu, u.CpuLimit, cores),
			share(u.MemoryBytes, u.MemoryLimitBytes, render.Bytes), rate(u.NetReceivedPerSecond),
			rate(u.NetSentPerSecond),
			rate(u.DiskReadPerSecond), rate(u.DiskWrittenPerSecond), gpus, percent(u.Gpu),
			share(u.GpuMemoryBytes, u.GpuMemoryTotalBytes, render.Bytes), when,
		}
	},
	ID: func(u *gql.MemberUsage) string { return u.MemberId },
}

// share is a number and the most of it, where they are known.
func share(number, most *float64, text func(float64) string) string {
	if number == nil {
		return ""
	}
	if most == nil {
		return text(*number)
	}
	return text(*number) + " of " + text(*most)
}

func cores(number float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(number, 'f', 2, 64), "0"), ".")
}

func rate(number *float64) string {
	if number == nil {
		return ""
	}
	return render.Bytes(*number) + "/s"
}

func percent(number *float64) string {
	if number == nil {
		return ""
	}
	return strconv.FormatFloat(*number*100, 'f', 0, 64) + "%"
}
