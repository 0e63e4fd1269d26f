package metering_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/metering"
)

// The column has 38 digits, 12 of them behind the point.
func TestADecimalHasTheDigitsOfItsColumnAndNoOtherForm(t *testing.T) {
	t.Parallel()
	most, finest := strings.Repeat("9", 26), strings.Repeat("9", 12)
	for _, text := range []string{"0", "7", "-7", "007", "0.5", most, "-" + most + "." + finest} {
		require.True(t, metering.IsDecimal(text), text)
	}
	for _, text := range []string{"", "-", "+7", "--7", ".5", "5.", "1e3", "1,5", " 7", "7 ", "7\n", "٧", "NaN", "0x7",
		most + "9", "0." + finest + "9"} {
		require.False(t, metering.IsDecimal(text), "%q", text)
	}
}

func TestADecimalHasOneCanonicalForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "000": "0", "0.000": "0", "-0": "0", "-0.00": "0",
		"7": "7", "007": "7", "70": "70", "0070.00": "70", "7.0": "7", "7.50": "7.5", "7.05": "7.05",
		"0.5": "0.5", "000.5": "0.5", "-0.5": "-0.5", "-007.50": "-7.5", "-70": "-70",
		"many": "many", "-07.": "-07.", "": "",
	} {
		require.Equal(t, want, metering.Decimal(text), "%q", text)
	}
}

// A record that is sent again is known by its content: how its number and its times are written is not in it, nor which
// operation caused it.
func TestADigestIsOfTheContentAndOfAllOfIt(t *testing.T) {
	t.Parallel()
	r := metering.Record{Source: "alc_1", Meter: "gpu_seconds", UsageID: "u", Quantity: "7.5", From: after(0),
		To: after(60)}
	same := r
	same.Quantity, same.OperationID, same.CorrelationID = "07.50", "op_1", "cor_1"
	same.From, same.To = r.From.In(time.FixedZone("UTC+5", 5*60*60)), r.To.Local()
	require.Equal(t, r.Digest(), same.Digest())

	seen := map[string]string{string(r.Digest()): "the record itself"}
	for field, change := range map[string]func(*metering.Record){
		"source":       func(r *metering.Record) { r.Source = "alc_2" },
		"meter":        func(r *metering.Record) { r.Meter = "node_seconds" },
		"usage id":     func(r *metering.Record) { r.UsageID = "x" },
		"basis":        func(r *metering.Record) { r.Basis = "x" },
		"tenant":       func(r *metering.Record) { r.TenantID = "x" },
		"project":      func(r *metering.Record) { r.ProjectID = "x" },
		"instance":     func(r *metering.Record) { r.InstanceID = "x" },
		"allocation":   func(r *metering.Record) { r.AllocationID = "x" },
		"member":       func(r *metering.Record) { r.MemberID = "x" },
		"component":    func(r *metering.Record) { r.ComponentKey = "x" },
		"SKU":          func(r *metering.Record) { r.SKU = "x" },
		"region":       func(r *metering.Record) { r.Region = "x" },
		"session":      func(r *metering.Record) { r.Session = "x" },
		"unit":         func(r *metering.Record) { r.Unit = "x" },
		"quantity":     func(r *metering.Record) { r.Quantity = "-7.5" },
		"from":         func(r *metering.Record) { r.From = r.From.Add(time.Microsecond) },
		"to":           func(r *metering.Record) { r.To = r.To.Add(time.Microsecond) },
		"retracts":     func(r *metering.Record) { r.Retracts = "x" },
		"bearer":       func(r *metering.Record) { r.BorneBy = "x" },
		"borne reason": func(r *metering.Record) { r.BorneReason = "x" },
		"borne owner":  func(r *metering.Record) { r.BorneOwner = "x" },
	} {
		other := r
		change(&other)
		digest := string(other.Digest())
		require.NotContains(t, seen, digest, "%s and %s", field, seen[digest])
		seen[digest] = field
	}
}
