package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Group returns a command that only holds others.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s needs a subcommand: see %s --help", use, cmd.CommandPath())
		},
	}
	parent.AddCommand(commands...)
	return parent
}

// Command returns a command that runs a function. How many arguments it takes follows from its use line.
func (t *Tool) Command(use, short string, run func(context.Context, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: arguments(use),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.entered = true
			return run(cmd.Context(), args)
		},
	}
}

// arguments reads how many arguments a use line names: "show INSTANCE" takes one, "enrol [NAME]" at most one.
func arguments(use string) cobra.PositionalArgs {
	required, optional := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "[") {
			optional++
		} else {
			required++
		}
	}
	switch {
	case required+optional == 0:
		return cobra.NoArgs
	case optional == 0:
		return cobra.ExactArgs(required)
	case required == 0:
		return cobra.MaximumNArgs(optional)
	default:
		return cobra.RangeArgs(required, required+optional)
	}
}

// Verb returns a command that makes a call and shows its answer.
func Verb[T any](
	t *Tool, use, short string, view func(T) View, call func(ctx context.Context, args []string) (T, error),
) *cobra.Command {
	return t.Command(use, short, func(ctx context.Context, args []string) error {
		answer, err := call(ctx, args)
		if err != nil {
			return err
		}
		return t.Show(view(answer))
	})
}

// List returns a command that reads at most --limit rows and shows them as a table.
func List[T any](
	t *Tool, use, short string, table Table[T], read func(ctx context.Context, args []string, limit int) ([]T, error),
) *cobra.Command {
	var limit int
	list := Verb(t, use, short, table.View, func(ctx context.Context, args []string) ([]T, error) {
		return read(ctx, args, limit)
	})
	list.Flags().IntVar(&limit, "limit", 100, "how many at most, 1 to 10000")
	list.PreRunE = func(*cobra.Command, []string) error {
		if limit < 1 || limit > 10000 {
			return fmt.Errorf("--limit %d: must be 1 to 10000", limit)
		}
		return nil
	}
	return list
}

// Pages returns a command that lists what belongs to one object: of returns the object's id, such as that of the
// project, and page reads a page of what belongs to it. A nil of lists what belongs to no object.
func Pages[N, E any, PE interface {
	*E
	GetNode() N
}, P interface {
	GetEdges() []E
	GetPageInfo() gql.PageInfo
}](
	t *Tool, use, short string, table Table[N], of func(ctx context.Context, args []string) (string, error),
	page func(ctx context.Context, of string, first int, after string) (P, error),
) *cobra.Command {
	return List(t, use, short, table, func(ctx context.Context, args []string, limit int) (_ []N, err error) {
		id := ""
		if of != nil {
			if id, err = of(ctx, args); err != nil {
				return nil, err
			}
		}
		return All[N, E, PE](limit, func(first int, after string) (P, error) { return page(ctx, id, first, after) })
	})
}

// InProject is the project of the run, as what a list or a verb is about.
func (t *Tool) InProject(ctx context.Context, _ []string) (string, error) { return t.ProjectID(ctx) }

// Of returns a verb about one object: find returns the object's id, and call gets it.
func Of[T any](
	t *Tool, use, short string, find func(ctx context.Context, args []string) (string, error), view func(T) View,
	call func(ctx context.Context, id string, args []string) (T, error),
) *cobra.Command {
	return Verb(t, use, short, view, func(ctx context.Context, args []string) (none T, err error) {
		id, err := find(ctx, args)
		if err != nil {
			return none, err
		}
		return call(ctx, id, args)
	})
}

// Reasoned returns a verb that takes --reason.
func Reasoned[T any](
	t *Tool, use, short string, view func(T) View, call func(ctx context.Context, args []string,
		reason string) (T, error),
) *cobra.Command {
	var reason string
	cmd := Verb(t, use, short, view, func(ctx context.Context, args []string) (T, error) {
		return call(ctx, args,
			reason)
	})
	ReasonFlag(cmd, &reason)
	return cmd
}

// All reads at most limit nodes of a connection, page by page; fetch gets how many to read and the cursor to read on
// after. The list is never nil, so that it is [] as JSON.
func All[N, E any, PE interface {
	*E
	GetNode() N
}, P interface {
	GetEdges() []E
	GetPageInfo() gql.PageInfo
}](limit int, fetch func(first int, after string) (P, error)) ([]N, error) {
	list := []N{}
	for node, err := range client.All[N, E, PE](limit, fetch) {
		if err != nil {
			return nil, err
		}
		list = append(list, node)
	}
	return list, nil
}
