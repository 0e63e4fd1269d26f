package oci

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// meter turns the counters of containers into usage. A container counts from zero each time it starts, and the list on
// the disk holds how far each start of each container was counted: what a process did not write down before it ended is
// still in the container's counter, and what it did is not counted again.
type meter struct {
	log   *usagelog.Log
	mu    sync.Mutex
	marks map[string]map[string]mark // by instance, then by dimension, member and start
}

// mark is how far a counter was counted, and when.
type mark struct {
	value *big.Rat
	at    time.Time
}

func newMeter(dir string) (*meter, error) {
	log, err := usagelog.New(filepath.Join(dir, "usage"))
	return &meter{log: log, marks: make(map[string]map[string]mark)}, err
}

// usageCommand reads a container's counters.
func usageCommand() adapter.RunCommand { return verb("usage") }

// page answers the usage after a cursor. It reads the containers first when nothing is known after the cursor.
func (m *meter) page(ctx context.Context, call *adapter.Call, after string) (adapter.UsagePage, error) {
	page, err := m.log.Page(call.Instance.ID, after)
	if err != nil || len(page.Records) > 0 {
		return page, err
	}
	m.collect(ctx, call, call.Of(component))
	return m.log.Page(call.Instance.ID, after)
}

// collect reads the counters of members at once, and returns those whose nodes do not answer: they are read later.
func (m *meter) collect(ctx context.Context, call *adapter.Call, members []adapter.Member) (silent []adapter.Member) {
	counters := countersOf(call.Instance)
	if len(counters) == 0 {
		return nil
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, member := range members {
		if !member.Node.IsReachable() {
			continue
		}
		all.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			result, err := call.Try(bounded, member, "usage", usageCommand(), adapter.Within(askTime))
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				silent = append(silent, member)
			}
			if err = m.take(call.Instance.ID, member, counters, result, err); err != nil {
				call.Log.Warn("a container's counters could not be read; they are read again", "member", member.ID,
					"error", err)
			}
		})
	}
	all.Wait()
	return silent
}

// ending are the operations that stop containers; what these have counted goes with them.
var ending = []adapter.Kind{adapter.InstanceUpgrade, adapter.InstanceRollback, adapter.InstanceDecommission,
	adapter.MemberDrain, adapter.MemberRemove, adapter.MemberReplace}

// before reads the counters at the beginning of an operation that stops containers. That they cannot be read stops
// nothing.
func (m *meter) before(do adapter.OperationFunc) adapter.OperationFunc {
	return func(ctx context.Context, run *adapter.Run) error {
		counters := countersOf(run.Instance())
		if len(counters) == 0 {
			return do(ctx, run)
		}
		within := lastTime
		if run.Force() {
			within = askTime
		}
		_ = run.Each(ctx, run.Of(component), func(ctx context.Context, member adapter.Member) error {
			if !member.Node.IsReachable() {
				return nil
			}
			bounded, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			result, err := run.Look(bounded, member, "usage", usageCommand(), adapter.Within(within))
			if err = m.take(run.Instance().ID, member, counters, result, err); err != nil {
				run.Log().Info("a container's counters were not read before it stops", "member", member.ID,
					"error", err)
			}
			return nil
		})
		return do(ctx, run)
	}
}

// countersOf are what an instance counts, by metric; none of a profile that cannot be read.
func countersOf(instance adapter.Instance) map[string]string {
	var p struct{ Usage *Usage }
	if json.Unmarshal(instance.RuntimeProfile, &p) != nil || p.Usage == nil {
		return nil
	}
	out := make(map[string]string, len(p.Usage.Counters))
	for _, one := range p.Usage.Counters {
		out[one.Metric] = one.Dimension
	}
	return out
}

// take writes down what a member's counters have grown by since they were taken last.
func (m *meter) take(instance string, member adapter.Member, counters map[string]string, result adapter.TaskResult,
	err error) error {
	if err != nil {
		return err
	}
	if result.State != adapter.TaskSucceeded {
		return errors.New(lastLines(result.Stderr, 1))
	}
	seen, err := readSample(result.Stdout, counters)
	if err != nil || seen == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	marks, err := m.marksOf(instance)
	if err != nil {
		return err
	}
	var records []adapter.UsageRecord
	for dimension, value := range seen.values {
		key := fmt.Sprintf("%s/%s/%d", dimension, member.ID, seen.started.UnixNano())
		last, ok := marks[key]
		if !ok {
			last = mark{new(big.Rat), seen.started.Truncate(time.Second)}
		}
		if value.Cmp(last.value) <= 0 {
			continue // a counter that fell within a start is no counter; what it had reached stays
		}
		records = append(records, adapter.UsageRecord{ID: key + "/" + decimal(value), Dimension: dimension,
			Quantity: decimal(new(big.Rat).Sub(value, last.value)), From: last.at, To: latest(last.at,
				seen.at), MemberID: member.ID})
	}
	slices.SortFunc(records, func(a, b adapter.UsageRecord) int { return strings.Compare(a.ID, b.ID) })
	if err := m.log.Add(instance, records...); err != nil {
		return err
	}
	for _, record := range records {
		remember(marks, record)
	}
	return nil
}

// marksOf are how far an instance's counters were counted, as its list says. The meter is locked.
func (m *meter) marksOf(instance string) (map[string]mark, error) {
	if marks, ok := m.marks[instance]; ok {
		return marks, nil
	}
	marks := make(map[string]mark)
	if err := m.log.Each(instance, func(record adapter.UsageRecord) { remember(marks, record) }); err != nil {
		return nil, err
	}
	m.marks[instance] = marks
	return marks, nil
}

// remember takes a record's mark from its id.
func remember(marks map[string]mark, record adapter.UsageRecord) {
	at := strings.LastIndexByte(record.ID, '/')
	if value, ok := new(big.Rat).SetString(record.ID[at+1:]); at > 0 && ok {
		marks[record.ID[:at]] = mark{value, record.To}
	}
}

// sample is what a container's counters say.
type sample struct {
	started, at time.Time
	values      map[string]*big.Rat // by dimension
}

// readSample reads what the script prints: when the container started (nanoseconds) and the time now (seconds), then
// metrics in the text format of Prometheus. The series of a metric are added up, and so are metrics of one dimension.
// It is nil for a container that counts nothing.
func readSample(text string, counters map[string]string) (*sample, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Scan()
	var started, now int64
	if _, err := fmt.Sscanf(lines.Text(), "started %d now %d", &started, &now); err != nil {
		return nil, fmt.Errorf("the counters begin with %q: %w", lines.Text(), err)
	}
	out := &sample{started: time.Unix(0, started).UTC(), at: time.Unix(now, 0).UTC(), values: make(map[string]*big.Rat)}
	for lines.Scan() {
		name, value, err := readSeries(lines.Text())
		if err != nil {
			return nil, err
		}
		dimension, ok := counters[name]
		if !ok {
			continue
		}
		if out.values[dimension] == nil {
			out.values[dimension] = new(big.Rat)
		}
		out.values[dimension].Add(out.values[dimension], value)
	}
	return out, lines.Err()
}

// readSeries reads one line of metrics, such as `name{label="a b"} 12`; a time stamp behind it is passed over.
func readSeries(line string) (name string, value *big.Rat, err error) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", nil, fmt.Errorf("%q is not a metric", line)
	}
	rest := line[end:]
	if at := strings.LastIndexByte(rest, '}'); at >= 0 {
		rest = rest[at+1:]
	}
	words := strings.Fields(rest)
	if len(words) == 0 || len(words[0]) > 40 {
		return "", nil, fmt.Errorf("%q has no value", line)
	}
	// not SetString alone: it would take 1/3 and 1e999999999
	if number, wrong := strconv.ParseFloat(words[0], 64); wrong != nil || number < 0 || number > maxCounter {
		return "", nil, fmt.Errorf("%q is not a counter's value", words[0])
	}
	value, ok := new(big.Rat).SetString(words[0])
	if !ok {
		return "", nil, fmt.Errorf("%q is not a counter's value", words[0])
	}
	return line[:end], value, nil
}

// maxCounter is the most that a counter may have reached: beyond it not every whole number is one of a float64.
const maxCounter = 1 << 53

// decimal is a value with up to 12 digits behind the point.
func decimal(value *big.Rat) string {
	text := value.FloatString(12)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
