package authz

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Of the agreement test: how many cases, and from which seed; 0 takes one of the clock.
const tuples = 100_000

var seed = flag.Uint64("seed", 0, "seed of the random permission cases; 0 for a new one")

// small is a world in which random bindings and objects meet often.
type small struct {
	*rand.Rand
	tenants   []ids.ID
	projects  []ids.ID // two of each tenant
	instances []ids.ID // two of each project
	nodes     []ids.ID
	keys      []Key
	roles     []Role
}

func newSmall(seed uint64) *small {
	s := &small{Rand: rand.New(rand.NewPCG(seed, 4)), keys: append(Keys(), 0), nodes: []ids.ID{"nod_1", "nod_2"}}
	for t := range 3 {
		s.tenants = append(s.tenants, ids.ID("ten_"+string(rune('1'+t))))
		for p := range 2 {
			s.projects = append(s.projects, ids.ID("prj_"+string(rune('1'+2*t+p))))
			for i := range 2 {
				s.instances = append(s.instances, ids.ID("ins_"+string(rune('a'+4*t+2*p+i))))
			}
		}
	}
	for _, entry := range roles {
		s.roles = append(s.roles, entry.Role)
	}
	s.roles = append(s.roles, "emperor")
	return s
}

func pick[T any](s *small, from []T) T { return from[s.IntN(len(from))] }

// object is a thing somewhere: of the platform, a tenant, a project, an instance, a node; now and then of no sense at
// all.
func (s *small) object() Object {
	p := s.IntN(len(s.projects))
	object := Object{TenantID: s.tenants[p/2], ProjectID: s.projects[p]}
	switch s.IntN(8) {
	case 0:
		return Object{}
	case 1:
		return Object{NodeID: pick(s, s.nodes)}
	case 2:
		return Object{TenantID: object.TenantID}
	case 3:
		return object
	case 4:
		object.AllocationID = pick(s, []ids.ID{"alc_1", "alc_2"})
	case 5:
		// a project under another tenant's name
		return Object{TenantID: pick(s, s.tenants), ProjectID: pick(s, s.projects)}
	case 6:
		object.NodeID = pick(s, s.nodes)
	}
	object.InstanceID = s.instances[2*p+s.IntN(2)]
	return object
}

// instant returns no time, a past one, now or one to come.
func (s *small) instant() time.Time {
	return pick(s, []time.Time{{}, {}, now.Add(-time.Hour), now, now.Add(time.Nanosecond), now.Add(time.Hour)})
}

func (s *small) holding() Holding {
	h := Holding{ID: ids.New(ids.RoleBinding), Binding: Binding{Role: pick(s, s.roles), ExpiresAt: s.instant()}}
	p := s.IntN(len(s.projects))
	switch s.IntN(5) {
	case 0:
	case 1:
		h.TenantID = s.tenants[p/2]
	case 2:
		h.ProjectID = s.projects[p] // as an old row without its tenant
	default:
		h.TenantID, h.ProjectID = s.tenants[p/2], s.projects[p]
	}
	if s.IntN(6) == 0 {
		h.RevokedAt = now.Add(-time.Minute)
	}
	return h
}

func (s *small) names() []string {
	var names []string
	for range s.IntN(12) {
		names = append(names, pick(s, s.keys).String())
	}
	return names
}

func (s *small) random() Case {
	p := s.IntN(len(s.projects))
	c := Case{Key: pick(s, s.keys), Object: s.object(), Now: now, Anywhere: s.IntN(10) == 0}
	if !c.Anywhere { // what is of no object is no app action
		c.Risk = pick(s, append(risks, "", "", "UNHEARD_OF"))
	}
	c.Subject = Subject{Kind: pick(s, []Kind{KindUser, KindUser, KindUser, KindServiceAccount, KindServiceAccount,
		KindOperation, KindNode, KindEnrolment, KindSystem}), ID: "sub_1"}
	switch c.Subject.Kind {
	case KindUser:
		c.Subject.TenantID = pick(s, append([]ids.ID{""}, s.tenants...))
		for range s.IntN(6) {
			c.Holdings = append(c.Holdings, s.holding())
		}
	case KindServiceAccount, KindOperation:
		c.Subject.TenantID, c.Subject.ProjectID = s.tenants[p/2], s.projects[p]
		if s.IntN(20) == 0 {
			c.Subject.ProjectID = ""
		}
		c.Allow = append(s.names(), c.Key.String())[s.IntN(2):]
		if c.Subject.Kind == KindOperation && s.IntN(10) > 0 {
			c.Subject.InstanceID = s.instances[2*p+s.IntN(2)]
		}
		if c.Subject.Kind == KindServiceAccount && s.IntN(3) == 0 {
			c.Subject.Limits.Objects = []ids.ID{s.instances[2*p+s.IntN(2)], "alc_1"}[s.IntN(2):]
		}
		if c.Subject.Kind == KindServiceAccount {
			c.Subject.Limits.MaxRisk = pick(s, append(risks, ""))
		}
		if s.IntN(3) > 0 { // most of the time at home
			c.Object.TenantID, c.Object.ProjectID = c.Subject.TenantID, c.Subject.ProjectID
		}
	case KindNode:
		c.Subject.NodeID = pick(s, append(s.nodes, ""))
		c.Key = []Key{c.Key, NodeReport, TaskExecute}[s.IntN(3)]
	}
	return c
}

// enforced is what enforcement says of the same rows.
func enforced(c Case) bool {
	var live []Binding
	for _, h := range c.Holdings {
		if h.RevokedAt.IsZero() {
			live = append(live, h.Binding)
		}
	}
	actor := NewActor(c.Subject, live, c.Allow, c.Now)
	if c.Anywhere {
		return actor.AllowsAnywhere(c.Key)
	}
	return actor.AllowsOn(c.Key, c.Object) && (c.Risk == "" || actor.RequireRisk(c.Risk) == nil)
}

func TestExplanationAgreesWithEnforcement(t *testing.T) {
	t.Parallel()
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./authz -run %s -seed %d", from, t.Name(), from)
	s := newSmall(from)
	yes := map[Kind]int{}
	no := map[Kind]int{}
	for range tuples {
		c := s.random()
		said, is := Explain(c), enforced(c)
		require.Equal(t, is, said.Allowed(), "%+v\n%+v", c, said)
		if is {
			yes[c.Subject.Kind]++
			require.Empty(t, said.Missing)
			s.loses(t, c, said)
			continue
		}
		no[c.Subject.Kind]++
		require.NotEmpty(t, said.Missing, "%+v", c)
		s.gains(t, c, said)
	}
	for _, kind := range []Kind{KindUser, KindServiceAccount, KindOperation, KindNode} {
		require.Greater(t, yes[kind], tuples/1000, "%s is hardly ever allowed: the cases prove little", kind)
		require.Greater(t, no[kind], tuples/1000, "%s is hardly ever refused", kind)
	}
}

// loses removes the rows that the verdict names as giving the key: enforcement must then refuse.
func (s *small) loses(t *testing.T, c Case, said Verdict) {
	t.Helper()
	if c.Subject.Kind != KindUser {
		return
	}
	giving := map[ids.ID]bool{}
	for _, ground := range said.Because {
		require.NotEmpty(t, ground.ID)
		giving[ground.ID] = true
	}
	var left []Holding
	for _, h := range c.Holdings {
		if !giving[h.ID] {
			left = append(left, h)
		}
	}
	c.Holdings = left
	require.False(t, enforced(c), "without %v\n%+v", said.Because, c)
}

// gains gives a person the first role that the verdict names as missing: enforcement must then allow.
func (s *small) gains(t *testing.T, c Case, said Verdict) {
	t.Helper()
	for _, ground := range said.Missing {
		if c.Subject.Kind != KindUser || ground.Kind != GroundBinding || ground.ID != "" {
			continue
		}
		h := Holding{ID: "rb_new", Binding: Binding{Role: ground.Role}}
		switch ground.Scope {
		case ScopeTenant:
			h.TenantID = c.Object.TenantID
		case ScopeProject:
			h.TenantID, h.ProjectID = c.Object.TenantID, c.Object.ProjectID
		}
		c.Holdings = append(c.Holdings, h)
		require.True(t, enforced(c), "with %+v\n%+v", ground, c)
		return
	}
}

func TestExplanationNamesTheNearestMissingRow(t *testing.T) {
	t.Parallel()
	person := Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1}
	robot := Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1, ProjectID: project1}
	here := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins1}
	ended := Holding{ID: "rb_1", Binding: Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1,
		ExpiresAt: now.Add(-time.Hour)}}
	revoked := Holding{ID: "rb_2", Binding: Binding{Role: ProjectAdmin, TenantID: tenant1},
		RevokedAt: now.Add(-time.Hour)}
	limited := robot
	limited.Limits.Objects = []ids.ID{ins2}
	for name, c := range map[string]struct {
		of   Case
		kind GroundKind
		id   ids.ID
		says string
	}{
		"a role that nobody gave": {Case{Subject: person, Key: AppsInstanceCreate, Object: here}, GroundBinding, "",
			"project_admin in project"},
		"the least role that would do": {Case{Subject: person, Key: AppsInstanceRead, Object: here}, GroundBinding, "",
			"project_viewer in project"},
		"a binding that ended": {Case{Subject: person, Key: AppsInstanceCreate, Object: here,
			Holdings: []Holding{ended}}, GroundBinding, "rb_1", "until the binding ended on"},
		"a binding that was revoked": {Case{Subject: person, Key: AppsInstanceCreate, Object: here,
			Holdings: []Holding{revoked}}, GroundBinding, "rb_2", "revoked on"},
		"another tenant's person": {Case{Subject: person, Key: AppsInstanceRead,
			Object: Object{TenantID: tenant2, ProjectID: project3}}, GroundLimit, "usr_1", "another tenant"},
		"for platform staff alone": {Case{Subject: person, Key: TenantCreate}, GroundCeiling, "",
			"only platform staff"},
		"for machines alone": {Case{Subject: person, Key: TaskExecute, Object: here}, GroundCeiling, "",
			"for machines alone"},
		"somebody disabled": {Case{Subject: person, Key: AppsInstanceRead, Object: here,
			Barred:   "the person is disabled",
			Holdings: []Holding{{ID: "rb_3", Binding: Binding{Role: ProjectAdmin, TenantID: tenant1}}}},
			GroundLimit, "usr_1",
			"disabled"},
		"not on the allow-list": {Case{Subject: robot, Key: AppsInstanceRead, Object: here}, GroundAllowList, "sa_1",
			"is not on the service account's allow-list"},
		"above the ceiling": {Case{Subject: robot, Key: BindingGrant, Object: here,
			Allow: []string{"identity.binding.grant"}}, GroundCeiling, "sa_1", "above the ceiling of service accounts"},
		"out of its project": {Case{Subject: robot, Key: AppsInstanceRead,
			Object: Object{TenantID: tenant1, ProjectID: project2}, Allow: []string{"apps.instance.read"}},
			GroundLimit, "sa_1",
			"never leaves its project"},
		"beyond its risk": {Case{Subject: Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1,
			ProjectID: project1, Limits: Limits{MaxRisk: "READ"}},
			Key: AppsInstanceRead, Object: here, Allow: []string{"apps.instance.read"}, Risk: "WRITE"},
			GroundLimit, "sa_1",
			"risk up to READ, and not WRITE"},
		"beyond its limits": {Case{Subject: limited, Key: AppsInstanceRead, Object: here,
			Allow: []string{"apps.instance.read"}}, GroundLimit, "sa_1", "limits do not reach"},
		"another instance's token": {Case{Subject: Subject{Kind: KindOperation, ID: "op_1", TenantID: tenant1,
			ProjectID: project1, InstanceID: ins2}, Key: TaskRun, Object: here, Allow: []string{"task.run"}},
			GroundLimit,
			"op_1", "limits do not reach"},
		"another node's credential": {Case{Subject: Subject{Kind: KindNode, ID: nod1, NodeID: nod1}, Key: TaskExecute,
			Object: Object{NodeID: nod2}}, GroundLimit, nod1, "its own node"},
		"what no node does": {Case{Subject: Subject{Kind: KindNode, ID: nod1, NodeID: nod1}, Key: TenantRead,
			Object: Object{NodeID: nod1}}, GroundCeiling, nod1, "beyond what a node's credential"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.of.Now = now
			said := Explain(c.of)
			require.False(t, said.Allowed())
			require.Equal(t, c.kind, said.Missing[0].Kind)
			require.Equal(t, c.id, said.Missing[0].ID)
			require.Contains(t, said.Missing[0].Message, c.says)
		})
	}
}

func TestExplanationIsBounded(t *testing.T) {
	t.Parallel()
	c := Case{Subject: Subject{Kind: KindUser, ID: "usr_1"}, Key: TenantRead,
		Object: Object{TenantID: tenant1}, Now: now}
	for range 3 * maxBecause {
		c.Holdings = append(c.Holdings, Holding{ID: ids.New(ids.RoleBinding),
			Binding: Binding{Role: TenantAdmin, TenantID: tenant1}})
	}
	require.Len(t, Explain(c).Because, maxBecause)
	for i := range c.Holdings {
		c.Holdings[i].RevokedAt = now
	}
	said := Explain(c)
	require.LessOrEqual(t, len(said.Missing), maxMissing)
	require.Equal(t, c.Holdings[len(c.Holdings)-1].ID, said.Missing[0].ID, "the newest that ended is the nearest")
	require.True(t, strings.HasPrefix(said.Missing[len(said.Missing)-1].Message, "platform_operator"),
		"what could be given has room besides")
}
