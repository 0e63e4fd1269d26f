package health

import (
	"context"
	"encoding/csv"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// toolTime bounds a vendor's program, which waits for the driver: one that hangs is itself the sign of a broken GPU.
const toolTime = 20 * time.Second

// smiQueries are the queries to nvidia-smi, the most precise first: older drivers do not know every column.
var smiQueries = []string{
	"uuid,ecc.errors.uncorrected.volatile.total,remapped_rows.failure,retired_pages.pending",
	"uuid,ecc.errors.uncorrected.volatile.total",
	"uuid",
}

// gpus checks the GPUs by their vendor's program. Without one there is nothing to ask.
func gpus(ctx context.Context, declared int) []gql.NodeConditionInput {
	if program, err := exec.LookPath("nvidia-smi"); err == nil {
		return []gql.NodeConditionInput{nvidia(ctx, program, declared)}
	}
	if program, err := exec.LookPath("rocm-smi"); err == nil {
		return []gql.NodeConditionInput{amd(ctx, program, declared)}
	}
	return nil
}

// ask runs a vendor's program; err says in a few words what was wrong.
func ask(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...) // #nosec G204 -- the vendor's own program
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", errors.New("it did not answer within " + toolTime.String())
	case err != nil:
		return "", errors.New(err.Error() + ": " + firstLine(out))
	}
	return string(out), nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text.Clean(out)), "\n")
	return line
}

// nvidia checks that every declared GPU answers, has no uncorrected error and no row that could not be remapped.
func nvidia(ctx context.Context, program string, declared int) gql.NodeConditionInput {
	var out string
	var err error
	for _, query := range smiQueries {
		if out, err = ask(ctx, program, "--query-gpu="+query, "--format=csv,noheader,nounits"); err == nil ||
			!strings.Contains(err.Error(), "not a valid field") {
			break
		}
	}
	if err != nil {
		return found("gpu", gql.NodeConditionStateBad, "nvidia-smi: %s", err)
	}
	return weigh(out, declared)
}

// weigh judges what NVIDIA's program printed: a line for each GPU.
func weigh(out string, declared int) gql.NodeConditionInput {
	reader := csv.NewReader(strings.NewReader(out))
	reader.TrimLeadingSpace, reader.FieldsPerRecord = true, -1
	lines, err := reader.ReadAll()
	if err != nil {
		return found("gpu", gql.NodeConditionStateUnknown, "the output of nvidia-smi cannot be read: %s",
			firstLine([]byte(out)))
	}
	if len(lines) < declared {
		return found("gpu", gql.NodeConditionStateBad, "nvidia-smi lists %d of %d GPUs", len(lines), declared)
	}
	var warning string
	for _, fields := range lines {
		switch id := fields[0]; {
		case !strings.HasPrefix(id, "GPU-"):
			return found("gpu", gql.NodeConditionStateBad, "nvidia-smi: %s", strings.Join(fields, ", "))
		case column(fields, 1) != "0" && number(column(fields, 1)):
			return found("gpu", gql.NodeConditionStateBad, "%s has %s uncorrected memory errors: reset it",
				id, fields[1])
		case column(fields, 2) == "Yes" || column(fields, 2) == "1":
			return found("gpu", gql.NodeConditionStateBad,
				"%s could not remap a broken row of its memory: replace it", id)
		case column(fields, 3) == "Yes":
			warning = id + " retires a page of its memory at its next reset"
		}
	}
	if warning != "" {
		return found("gpu", gql.NodeConditionStateWarning, "%s", warning)
	}
	return found("gpu", gql.NodeConditionStateGood, "%d GPUs answer", len(lines))
}

// column is a field of a line; empty where the driver knows none.
func column(fields []string, at int) string {
	if at >= len(fields) {
		return ""
	}
	return strings.TrimSpace(fields[at])
}

// number reports whether a field is a count, not such as [N/A].
func number(field string) bool { return field != "" && strings.Trim(field, "0123456789") == "" }

// amd checks that every declared GPU answers.
func amd(ctx context.Context, program string, declared int) gql.NodeConditionInput {
	out, err := ask(ctx, program, "--showid", "--csv")
	if err != nil {
		return found("gpu", gql.NodeConditionStateBad, "rocm-smi: %s", err)
	}
	cards := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "card") && len(line) > 4 && line[4] >= '0' && line[4] <= '9' {
			cards++
		}
	}
	if cards < declared {
		return found("gpu", gql.NodeConditionStateBad, "rocm-smi lists %d of %d GPUs", cards, declared)
	}
	return found("gpu", gql.NodeConditionStateGood, "%d GPUs answer", cards)
}
