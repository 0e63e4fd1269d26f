package metering_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/metering"
)

// metered is an instance that has run three manifests: the second counts tokens in another unit, the third counts none.
func metered() *metering.Metering {
	busy := metering.Dimension{Name: "busy", Unit: "second", Kind: metering.KindShowback}
	first := metering.Dimension{Name: "tokens", Unit: "token", Kind: metering.KindApp}
	return &metering.Metering{InstanceID: "ins_1", TenantID: "ten_1", ProjectID: "prj_1", CreatedAt: after(0.6),
		Eras: []metering.Era{
			{Since: after(0.6), Dimensions: []metering.Dimension{first}},
			{Since: after(100), Dimensions: []metering.Dimension{busy, {Name: "tokens", Unit: "kilotoken"}}},
			{Since: after(200), Dimensions: []metering.Dimension{busy}},
		},
		Members: map[string]metering.Member{"mem_1": {AllocationID: "alc_1", ComponentKey: "worker"}}}
}

// tokens is a record of the first manifest's dimension, with what a test changes in it.
func tokens(changes ...func(*metering.Sent)) *metering.Sent {
	sent := &metering.Sent{ID: "job-1", Dimension: "tokens", Quantity: "7", From: after(10), To: after(20)}
	for _, change := range changes {
		change(sent)
	}
	return sent
}

// during changes a record's times.
func during(from, to float64) func(*metering.Sent) {
	return func(s *metering.Sent) { s.From, s.To = after(from), after(to) }
}

// of changes the quantity of a record and what it retracts.
func of(quantity, retracts string) func(*metering.Sent) {
	return func(s *metering.Sent) { s.Quantity, s.Retracts = quantity, retracts }
}

func TestARecordIsStoredWithWhatTheInstanceKnowsOfIt(t *testing.T) {
	t.Parallel()
	utc5 := time.FixedZone("UTC+5", 5*60*60)
	got, wrong := metered().Record(tokens(of("-07.50", "job-0"), func(s *metering.Sent) {
		s.MemberID, s.From, s.To = "mem_1", after(10).Add(1999*time.Nanosecond).In(utc5), after(20).In(utc5)
	}), after(300))
	require.Nil(t, wrong)
	require.Equal(t, &metering.Record{Source: "ins_1", Meter: "tokens", UsageID: "job-1", Basis: metering.App,
		TenantID: "ten_1", ProjectID: "prj_1", InstanceID: "ins_1", AllocationID: "alc_1", MemberID: "mem_1",
		ComponentKey: "worker", Session: "mem_1", Unit: "token", Quantity: "-7.5",
		From: after(10).Add(time.Microsecond), To: after(20), Retracts: "job-0", BorneBy: metering.Tenant}, got,
		"in UTC and to the microsecond, as the database keeps it")
}

// A price per started minute is rounded over the session that the adapter names, else over the member, else over the
// instance.
func TestARecordsSessionIsTheNarrowestThatIsKnown(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*metering.Sent){
		"chat-9": func(s *metering.Sent) { s.Session, s.MemberID = "chat-9", "mem_1" },
		"mem_1":  func(s *metering.Sent) { s.MemberID = "mem_1" },
		"ins_1":  func(*metering.Sent) {},
	} {
		got, wrong := metered().Record(tokens(change), after(300))
		require.Nil(t, wrong, want)
		require.Equal(t, want, got.Session)
	}
}

// An upgrade changes what is counted from then on: what began before it is in the unit that was declared then.
func TestARecordIsOfTheManifestThatRanWhenItBegan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dimension string
		from, to  float64
		unit      string
		basis     metering.Basis
		code      fault.Code
	}{
		"of the first":                       {"tokens", 10, 20, "token", metering.App, ""},
		"begun in the first":                 {"tokens", 99.9, 150, "token", metering.App, ""},
		"of the second from its moment on":   {"tokens", 100, 100, "kilotoken", metering.App, ""},
		"begun in the second":                {"tokens", 199.9, 250, "kilotoken", metering.App, ""},
		"not declared any more":              {"tokens", 200, 250, "", "", fault.DimensionRetired},
		"only shown":                         {"busy", 100, 110, "second", metering.Showback, ""},
		"still declared":                     {"busy", 200, 250, "second", metering.Showback, ""},
		"ended when it was declared":         {"busy", 50, 100, "second", metering.Showback, ""},
		"ended before it was declared":       {"busy", 50, 99.9, "", "", fault.DimensionUnknown},
		"declared by none":                   {"pages", 10, 20, "", "", fault.DimensionUnknown},
		"ended in the second of an upgrade":  {"busy", 50, 100.2, "second", metering.Showback, ""},
		"of the second of the creation":      {"tokens", 0, 0, "token", metering.App, ""},
		"of the last second before creation": {"tokens", -0.1, 20, "", "", fault.UsageBeforeInstance},
	} {
		sent := tokens(during(test.from, test.to), func(s *metering.Sent) { s.Dimension = test.dimension })
		got, wrong := metered().Record(sent, after(300))
		if test.code != "" {
			require.NotNil(t, wrong, name)
			require.Equal(t, test.code, wrong.Code, name)
			continue
		}
		require.Nil(t, wrong, name)
		require.Equal(t, [3]string{test.dimension, test.unit, string(test.basis)},
			[3]string{got.Meter, got.Unit, string(got.Basis)}, name)
	}
}

func TestARecordIsTakenUpToEveryBound(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("é", 100) // 200 bytes: the bound is of bytes, as the database's
	for name, change := range map[string]func(*metering.Sent){
		"the longest texts":                func(s *metering.Sent) { s.ID, s.Session = longest, longest },
		"the longest id that is retracted": of("-1", longest),
		"a control character":              func(s *metering.Sent) { s.ID = "job\x01" },
		"nothing":                          of("0", ""),
		"a negative zero":                  of("-0.0", ""),
		"a retraction of nothing":          of("0.00", "job-0"),
		"the most digits":                  of("99999999999999999999999999.999999999999", ""),
		"a moment":                         during(20, 20),
		"as far ahead as clocks may differ": func(s *metering.Sent) {
			s.Dimension, s.To = "busy", after(300).Add(5*time.Minute)
		},
		"no member": func(s *metering.Sent) { s.MemberID = "" },
		"a member":  func(s *metering.Sent) { s.MemberID = "mem_1" },
	} {
		_, wrong := metered().Record(tokens(change), after(300))
		require.Nil(t, wrong, name)
	}
}

func TestARecordIsRefusedWithItsFieldAndReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 201)
	for name, test := range map[string]struct {
		change func(*metering.Sent)
		code   fault.Code
		field  string
	}{
		"an id too long":            {func(s *metering.Sent) { s.ID = long }, fault.TooLong, "id"},
		"a session too long":        {func(s *metering.Sent) { s.Session = long }, fault.TooLong, "session"},
		"a retracted id too long":   {of("-1", long), fault.TooLong, "retracts"},
		"a dimension too long":      {func(s *metering.Sent) { s.Dimension = long }, fault.TooLong, "dimension"},
		"a zero byte":               {func(s *metering.Sent) { s.ID = "job\x00" }, fault.BadValue, "id"},
		"a session that is no text": {func(s *metering.Sent) { s.Session = "\xff" }, fault.BadValue, "session"},
		"no id":                     {func(s *metering.Sent) { s.ID = "" }, fault.Required, "id"},
		"no quantity":               {of("", ""), fault.UsageQuantity, "quantity"},
		"no number":                 {of("many", ""), fault.UsageQuantity, "quantity"},
		"less than nothing":         {of("-0.1", ""), fault.UsageQuantity, "quantity"},
		"a retraction of more":      {of("0.1", "job-0"), fault.UsageQuantity, "quantity"},
		"a retraction of itself":    {of("-1", "job-1"), fault.BadValue, "retracts"},
		"no beginning":              {func(s *metering.Sent) { s.From = time.Time{} }, fault.BadValue, "to"},
		"no end":                    {func(s *metering.Sent) { s.To = time.Time{} }, fault.BadValue, "to"},
		"an end before":             {during(20.1, 20), fault.BadValue, "to"},
		"more ahead than clocks differ": {func(s *metering.Sent) {
			s.To = after(300).Add(5*time.Minute + time.Nanosecond)
		}, fault.UsageInFuture, "to"},
		"before the instance":      {during(-0.1, 20), fault.UsageBeforeInstance, "from"},
		"what no one declared":     {func(s *metering.Sent) { s.Dimension = "" }, fault.DimensionUnknown, "dimension"},
		"what is declared no more": {during(201, 202), fault.DimensionRetired, "dimension"},
		"another's member":         {func(s *metering.Sent) { s.MemberID = "mem_2" }, fault.UnknownValue, "memberId"},
	} {
		got, wrong := metered().Record(tokens(test.change), after(300))
		require.Nil(t, got, name)
		require.NotNil(t, wrong, name)
		require.Equal(t, [2]string{string(test.code), test.field}, [2]string{string(wrong.Code), wrong.Path}, name)
		require.True(t, strings.HasPrefix(wrong.Message, test.field+" "), "%s: the text names the field: %s", name,
			wrong.Message)
	}
}

// The platform pulls usage from the adapters of such instances alone, and goes on for one whose last manifest counts
// nothing: its adapter may still have records of the time before.
func TestAnInstanceIsMeteredOnceAManifestOfItsHasADimension(t *testing.T) {
	t.Parallel()
	m := metered()
	m.Eras = append(m.Eras[:1], metering.Era{Since: after(100)})
	require.True(t, m.Metered())
	m.Eras = m.Eras[1:]
	require.False(t, m.Metered())
	require.False(t, (&metering.Metering{}).Metered())
}
