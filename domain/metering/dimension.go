package metering

import (
	"regexp"
	"slices"
	"strings"
)

// DimensionKind is what becomes of a dimension's records.
type DimensionKind string

// The kinds of dimension. The records of a showback dimension are shown and have no price.
const (
	KindApp      DimensionKind = "app"
	KindShowback DimensionKind = "showback"
)

// Dimension is something that an app's use is metered in.
type Dimension struct {
	Name, Unit string
	Kind       DimensionKind
}

// Basis is that of the dimension's records.
func (d Dimension) Basis() Basis {
	if d.Kind == KindShowback {
		return Showback
	}
	return App
}

// apart is everything that people write between words and numbers.
var apart = regexp.MustCompile(`[^a-z0-9]+`)

// words are those of a name or unit, in lower case, with one _ between two.
func words(text string) string {
	return strings.Trim(apart.ReplaceAllString(strings.ToLower(text), "_"), "_")
}

// ofCapacity is a machine, or a part of one, for a time: what the platform itself meters.
var ofCapacity = regexp.MustCompile(
	`(^|_)(gpus?|nodes?|machines?|hosts?|servers?|allocations?|accelerators?|devices?|instances?)` +
		`_?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?)($|_)`)

// CountsCapacity reports whether a name or unit is one of capacity: gpu_seconds, node-hours, GPUh.
func CountsCapacity(text string) bool { return ofCapacity.MatchString(words(text)) }

// ClaimsMeter reports whether a dimension's name is that of a meter of the platform's own.
func ClaimsMeter(name string) bool {
	return slices.Contains([]string{GPUSeconds, NodeSeconds, VolumeGiBSeconds}, words(name))
}
