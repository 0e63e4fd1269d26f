package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
)

// The codes of a reason, by dimension.
var (
	listCodes = [lists]fault.Code{fault.RegionDenied, fault.SKUDenied, fault.SourceDenied, fault.AppDenied,
		fault.VersionDenied,
		fault.ModeDenied, fault.ModeDenied, fault.PurposeDenied, fault.ClassDenied, fault.ProfileDenied,
		storageClasses: fault.StorageClassDenied, access: fault.AccessDenied}
	ceilingCodes = [ceilings]fault.Code{fault.MembersCeiling, fault.MembersCeiling, fault.GPUsCeiling,
		fault.InstancesCeiling, fault.VolumesCeiling}
)

// Region checks a region, such as that of an allocation. It returns nil or POLICY_DENIED, as all checks here do.
func (e *Effective) Region(region, path string) error { return e.word(regions, region, path) }

// SKU checks a SKU.
func (e *Effective) SKU(sku, path string) error { return e.word(skus, sku, path) }

// StorageClass checks a storage class by its name.
func (e *Effective) StorageClass(name, path string) error { return e.word(storageClasses, name, path) }

// App checks an app by its slug.
func (e *Effective) App(slug, path string) error { return e.word(apps, slug, path) }

// Purpose checks a purpose of runtime secrets; the path is "input.purpose".
func (e *Effective) Purpose(name string) error { return e.word(purposes, name, "input.purpose") }

// Mode checks an operating mode and a control-plane scope.
func (e *Effective) Mode(mode lifecycle.OperatingMode, scope lifecycle.ControlPlaneScope, path string) error {
	return Join(e.word(modes, string(mode), path), e.word(planes, string(scope), path))
}

// Version checks a version of an app, without a leading v. An allow list of versions rules the apps that it
// names and no others.
func (e *Effective) Version(slug, version, path string) error {
	in := func(list []span) bool {
		return slices.ContainsFunc(list, func(s span) bool { return s.has(version) })
	}
	return e.ask(versions, slug+" "+version, path, func(t *tables) (allowed, denied, final bool) {
		named := t.allowed[slug]
		return len(named) == 0 || in(named), in(t.denied[slug]), in(t.forbidden[slug])
	})
}

// Source checks an artifact by its reference, host/repository@digest, or by its address as a file. One that cannot be
// parsed is refused.
func (e *Effective) Source(ref, path string) error {
	from, ok := sourceOf(ref)
	shown, _, _ := strings.Cut(ref, "@")
	if !ok {
		return fault.New(fault.PolicyDenied, "policy cannot tell where the artifact comes from").
			With(fault.Reason{Code: fault.SourceDenied,
				Message: fmt.Sprintf("%.200q is neither host/repository nor an address",
					shown), Path: path})
	}
	return e.from(from, shown, path)
}

// Location checks the whole of what an artifact source covers: host[:port][/path], or an address that ends with a
// slash.
func (e *Effective) Location(location, path string) error {
	from, ok := locationOf(location)
	if !ok {
		return fault.New(fault.PolicyDenied, "policy cannot tell what the source covers").
			With(fault.Reason{Code: fault.SourceDenied, Path: path, Message: fmt.Sprintf(
				"%.200q is neither host[:port][/path] nor an address that ends with a slash", location)})
	}
	return e.from(from, location, path)
}

// from checks a place that artifacts come from.
func (e *Effective) from(from source, shown, path string) error {
	in := func(words map[string]bool) bool {
		return len(words) > 0 && from.within(func(word string) bool { return words[word] })
	}
	return e.ask(sources, shown, path, func(t *tables) (allowed, denied, final bool) {
		return t.allow == nil || in(t.allow), in(t.deny), in(t.final)
	})
}

func (e *Effective) word(of list, word, path string) error {
	return e.ask(of, word, path, func(t *tables) (allowed, denied, final bool) {
		return t.allow == nil || t.allow[word], t.deny[word], t.final[word]
	})
}

// ask checks every level and gathers the refusals; after a final rule it checks no further level.
func (e *Effective) ask(of list, word, path string, holds func(t *tables) (allowed, denied, final bool)) error {
	var reasons []fault.Reason
	for i := range e.levels {
		level := &e.levels[i]
		allowed, denied, final := holds(&level.lists[of])
		reason := fault.Reason{Code: listCodes[of], Path: path}
		switch {
		case final:
			reason.Code = fault.PlatformFinal
			reason.Message = fmt.Sprintf("the platform forbids %s %q for everyone (%s)", listNouns[of], word,
				rulePath(finalWords, listNames[of]))
			return denial([]fault.Reason{reason})
		case denied:
			reason.Message = fmt.Sprintf("%s %q is denied by %s (%s)", listNouns[of], word, level.ref(),
				rulePath(listNames[of], "deny"))
		case !allowed:
			reason.Message = fmt.Sprintf("%s %q is not among those that %s allows (%s)", listNouns[of], word,
				level.ref(), rulePath(listNames[of], "allow"))
		default:
			continue
		}
		reasons = append(reasons, reason)
	}
	return denial(reasons)
}

func rulePath(names ...string) string { return strings.Join(names, ".") }

// denial returns a fault with the reasons; nil without any.
func denial(reasons []fault.Reason) error {
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.PolicyDenied, "policy forbids this: %s", reasons[0].Message).With(reasons...)
}

// Join returns one POLICY_DENIED fault for the results of many checks; nil when none of them is a refusal. An error
// that is not a refusal of policy is returned as it is.
func Join(answers ...error) error {
	var reasons []fault.Reason
	for _, err := range answers {
		var refused *fault.Fault
		switch {
		case err == nil:
		case errors.As(err, &refused) && refused.Code == fault.PolicyDenied:
			reasons = append(reasons, refused.Reasons...)
		default:
			return err
		}
	}
	return denial(reasons)
}

// MembersOfInstance checks that one instance may have n members.
func (e *Effective) MembersOfInstance(n int, path string) error {
	return e.below(membersOfInstance, n, path)
}

// Members checks that the project may have n members.
func (e *Effective) Members(n int, path string) error { return e.below(members, n, path) }

// GPUs checks that the project may hold n GPUs.
func (e *Effective) GPUs(n int, path string) error { return e.below(gpus, n, path) }

// Instances checks that the project may have n instances.
func (e *Effective) Instances(n int, path string) error { return e.below(instances, n, path) }

// VolumeGiB checks that the project may have volumes of n GiB.
func (e *Effective) VolumeGiB(n int, path string) error { return e.below(volumeGiB, n, path) }

func (e *Effective) below(of ceiling, n int, path string) error {
	most := e.ceilings[of]
	if most.value < 0 || n <= most.value {
		return nil
	}
	return denial([]fault.Reason{{Code: ceilingCodes[of], Path: path,
		Message: fmt.Sprintf("%s allows %d %s, and this would make %d (%s)", e.levels[most.level].ref(), most.value,
			ceilingNouns[of], n, ceilingNames[of])}})
}

// Counts reports whether anything of a project is counted: members, GPUs, instances or money. When nothing is, the
// caller need not read what the project has.
func (e *Effective) Counts() bool {
	return e.ceilings[members].value >= 0 || e.ceilings[gpus].value >= 0 ||
		e.ceilings[instances].value >= 0 || e.Spends()
}

// Spends reports whether there is a spending ceiling.
func (e *Effective) Spends() bool {
	return slices.ContainsFunc(e.levels, func(l compiled) bool { return l.Document.cost != nil })
}

// Spending is what all allocations of a project cost an hour by the price book.
type Spending struct {
	// Hourly are amounts by currency.
	Hourly map[string]money.Decimal
	// Unpriced are SKUs in use without a price.
	Unpriced []string
}

// HourlyCost checks that the project may spend this. What is not priced in the ceiling's currency cannot be compared
// with it, and is refused.
func (e *Effective) HourlyCost(spent Spending, path string) error {
	var reasons []fault.Reason
	for i := range e.levels {
		level := &e.levels[i]
		most := level.Document.cost
		if most == nil {
			continue
		}
		refuse := func(format string, args ...any) {
			reasons = append(reasons, fault.Reason{Code: fault.SpendingCeiling, Path: path,
				Message: fmt.Sprintf("%s allows %s an hour, and ", level.ref(), most) +
					fmt.Sprintf(format, args...) + " (" +
					hourlyCost + ")"})
		}
		for _, currency := range slices.Sorted(maps.Keys(spent.Hourly)) {
			if currency != most.Currency {
				refuse("some of this is priced in %s", currency)
			}
		}
		if len(spent.Unpriced) > 0 {
			refuse("SKU %q has no price in the price book", spent.Unpriced[0])
		}
		if now := spent.Hourly[most.Currency]; now.Cmp(most.amount()) > 0 {
			refuse("this would make %s %s", now.Fixed(microPlaces), most.Currency)
		}
	}
	return denial(reasons)
}

// microPlaces are the places of an amount in millionths.
const microPlaces = 6

func (c Cost) amount() money.Decimal { return money.Shift(c.AmountMicros, microPlaces) }

// String returns the amount for a person.
func (c Cost) String() string { return c.amount().Fixed(microPlaces) + " " + c.Currency }
