package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The model is as plain as can be: sets of two values as bit masks. Every document that can be written over it is set
// on every level, in every combination, and the real code must answer as the model does.
var universe = []string{"a1", "b1"}

const everything = 0b11

// modelled is a level of the model.
type modelled struct {
	allow              int // -1 for no list
	deny, final        int
	members, instances int // ceilings, -1 for none
	scope              lifecycle.PolicyScope
	id                 ids.ID
	real               *Effective
	document           *Document
}

func (m modelled) admits() int {
	allowed := everything
	if m.allow >= 0 {
		allowed = m.allow
	}
	return allowed &^ m.deny &^ m.final
}

func quoted(mask int) string {
	var words []string
	for i, word := range universe {
		if mask&(1<<i) != 0 {
			words = append(words, `"`+word+`"`)
		}
	}
	return "[" + strings.Join(words, ",") + "]"
}

// build reads the modelled document as anybody's would be.
func (m modelled) build(t *testing.T) modelled {
	var regions, parts []string
	if m.allow >= 0 {
		regions = append(regions, `"allow":`+quoted(m.allow))
	}
	if m.deny > 0 {
		regions = append(regions, `"deny":`+quoted(m.deny))
	}
	parts = append(parts, `"regions":{`+strings.Join(regions, ",")+`}`)
	if m.final > 0 {
		parts = append(parts, `"final":{"regions":`+quoted(m.final)+`}`)
	}
	if m.members >= 0 {
		parts = append(parts, fmt.Sprintf(`"maxMembers":%d`, m.members))
	}
	if m.instances >= 0 {
		parts = append(parts, fmt.Sprintf(`"maxInstances":%d`, m.instances))
	}
	document, err := Parse(m.scope, []byte(`{`+strings.Join(parts, ",")+`}`))
	require.NoError(t, err)
	m.id, m.document = ids.New(ids.PolicyOverlay), document
	m.real = single(Level{Scope: m.scope, OverlayID: &m.id, Document: document})
	return m
}

func level(t *testing.T, scope lifecycle.PolicyScope) (out []modelled) {
	finals := []int{0}
	if scope == lifecycle.PolicyPlatform {
		finals = []int{0, 1, 2, 3}
	}
	for allow := -1; allow <= everything; allow++ {
		for deny := 0; deny <= everything; deny++ {
			for _, final := range finals {
				out = append(out, modelled{allow: allow, deny: deny, final: final, members: -1, instances: -1,
					scope: scope}.build(t))
			}
		}
	}
	return out
}

func each(t *testing.T, levels func(*testing.T, lifecycle.PolicyScope) []modelled,
	do func(p, n, j modelled)) (cases int) {
	tenants, projects := levels(t, lifecycle.PolicyTenant), levels(t, lifecycle.PolicyProject)
	for _, platform := range levels(t, lifecycle.PolicyPlatform) {
		for _, tenant := range tenants {
			for _, project := range projects {
				do(platform, tenant, project)
				cases++
			}
		}
	}
	return cases
}

// left is what an Effective lets through.
func left(e *Effective) (mask int) {
	for i, word := range universe {
		if e.Region(word, "x") == nil {
			mask |= 1 << i
		}
	}
	return mask
}

func TestNoLowerOverlayEverWidens(t *testing.T) {
	t.Parallel()
	cases := each(t, level, func(p, n, j modelled) {
		above := p.real.and(n.real)
		all := above.and(j.real)
		want := p.admits() & n.admits() & j.admits()
		if got := left(all); got != want || got&^left(above) != 0 || left(above)&^left(p.real) != 0 ||
			got&p.final != 0 {
			require.Failf(t, "widened", "%+v %+v %+v: %b, want %b", p, n, j, got, want)
		}
		other := p.real.and(n.real.and(j.real))
		if left(other) != want || other.Hash() != all.Hash() || len(other.Rules()) != len(all.Rules()) {
			require.Failf(t, "not associative", "%+v %+v %+v", p, n, j)
		}
		if choice := all.Regions(); chosen(choice) != want {
			require.Failf(t, "another choice", "%+v %+v %+v: %+v", p, n, j, choice)
		}
		widens(t, above, p.admits()&n.admits(), j)
	})
	require.Equal(t, 80*20*20, cases)
}

func chosen(choice Choice) (mask int) {
	for i, word := range universe {
		in := choice.Only == nil
		for _, one := range choice.Only {
			in = in || one == word
		}
		for _, one := range choice.Not {
			in = in && one != word
		}
		if in {
			mask |= 1 << i
		}
	}
	return mask
}

// widens holds what a new overlay is refused for against what it allows beyond the levels above.
func widens(t *testing.T, above *Effective, admitted int, j modelled) {
	beyond := 0
	if j.allow >= 0 {
		for i := range universe {
			if j.allow&(1<<i) != 0 && admitted&(1<<i) == 0 {
				beyond++
			}
		}
	}
	if reasons := Widens(above, j.document); len(reasons) != beyond {
		require.Failf(t, "widening unseen", "%+v: %v, want %d", j, reasons, beyond)
	}
}

func TestEveryDenialNamesTheLevelsThatSayNo(t *testing.T) {
	t.Parallel()
	each(t, level, func(p, n, j modelled) {
		all := p.real.and(n.real).and(j.real)
		for i, word := range universe {
			var want []string
			for _, one := range []modelled{p, n, j} {
				if one.final&(1<<i) != 0 {
					want = []string{"PLATFORM_FINAL"}
					break
				}
				if one.admits()&(1<<i) == 0 {
					want = append(want, "REGION_DENIED "+string(one.id))
				}
			}
			if got := origins(all.Region(word, "input.region")); strings.Join(got, ",") != strings.Join(want, ",") {
				require.Failf(t, "another origin", "%+v %+v %+v %s: %v, want %v", p, n, j, word, got, want)
			}
		}
	})
}

func origins(err error) (out []string) {
	if err == nil {
		return nil
	}
	for _, reason := range fault.From(err).Reasons {
		one := string(reason.Code)
		if at := strings.Index(reason.Message, "(pol_"); at >= 0 {
			one += " " + reason.Message[at+1:at+1+ids.MaxLen]
		}
		if reason.Path != "input.region" {
			one += " without its path"
		}
		out = append(out, one)
	}
	return out
}

// ceilingLevel is every level with two ceilings of three heights.
func ceilingLevel(t *testing.T, scope lifecycle.PolicyScope) (out []modelled) {
	for members := -1; members <= 2; members++ {
		for instances := -1; instances <= 2; instances++ {
			out = append(out, modelled{allow: -1, members: members, instances: instances, scope: scope}.build(t))
		}
	}
	return out
}

func TestTheLowestCeilingHolds(t *testing.T) {
	t.Parallel()
	lowest := func(values ...int) int {
		low := -1
		for _, v := range values {
			if v >= 0 && (low < 0 || v < low) {
				low = v
			}
		}
		return low
	}
	cases := each(t, ceilingLevel, func(p, n, j modelled) {
		above := p.real.and(n.real)
		both := [][2]int{{lowest(p.members, n.members, j.members), lowest(p.instances, n.instances, j.instances)}}
		for _, all := range []*Effective{above.and(j.real), p.real.and(n.real.and(j.real))} {
			for count := range 4 {
				most := both[0]
				if (all.Members(count, "x") == nil) != (most[0] < 0 || count <= most[0]) ||
					(all.Instances(count, "x") == nil) != (most[1] < 0 || count <= most[1]) {
					require.Failf(t, "another ceiling", "%+v %+v %+v at %d", p, n, j, count)
				}
			}
		}
		higher := 0
		if low := lowest(p.members, n.members); low >= 0 && j.members > low {
			higher++
		}
		if low := lowest(p.instances, n.instances); low >= 0 && j.instances > low {
			higher++
		}
		require.Len(t, Widens(above, j.document), higher)
	})
	require.Equal(t, 16*16*16, cases)
}

func TestACeilingNamesTheLevelItStandsOn(t *testing.T) {
	t.Parallel()
	each(t, ceilingLevel, func(p, n, j modelled) {
		all := p.real.and(n.real).and(j.real)
		err := all.Members(3, "x")
		if err == nil {
			return
		}
		low := all.ceilings[members]
		for i, one := range []modelled{p, n, j} {
			if one.members == low.value { // the widest of those that are as low
				require.Contains(t, err.Error(), string(one.id))
				require.Equal(t, i, low.level)
				return
			}
		}
		require.Fail(t, "no level has this ceiling")
	})
}
