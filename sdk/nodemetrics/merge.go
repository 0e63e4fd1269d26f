package nodemetrics

import "math"

// Sum adds up points, for one of a longer step.
type Sum struct {
	// Samples is how many samples were added.
	Samples     int
	total, most Values
	count       [Measures]int
	begun       bool
}

// Add adds what was measured in a shorter step.
func (s *Sum) Add(samples int, average, most Values) {
	if !s.begun {
		s.begun, s.most = true, Unknown()
	}
	s.Samples += samples
	for i := range average {
		if math.IsNaN(average[i]) {
			continue
		}
		s.total[i] += average[i] * float64(samples)
		s.count[i] += samples
		if high := max(average[i], zeroed(most[i])); math.IsNaN(s.most[i]) || high > s.most[i] {
			s.most[i] = high
		}
	}
}

func zeroed(value float64) float64 {
	if math.IsNaN(value) {
		return 0
	}
	return value
}

// Average returns the averages over all samples in which a measure was known.
func (s *Sum) Average() Values {
	v := Unknown()
	for i := range v {
		if s.count[i] > 0 {
			v[i] = s.total[i] / float64(s.count[i])
		}
	}
	return v
}

// Max returns the highest values.
func (s *Sum) Max() Values {
	if !s.begun {
		return Unknown()
	}
	return s.most
}

// Resample returns points of a longer step, a multiple of theirs. Steps end at multiples of the step since 1970. Points
// are in the order of time.
func Resample(points []Point, step int64) (out []Point) {
	var sum Sum
	var end int64
	flush := func() {
		if sum.Samples > 0 {
			out = append(out, Point{At: end, Samples: sum.Samples, Average: sum.Average().Pointers(),
				Max: sum.Max().Pointers()})
		}
		sum = Sum{}
	}
	for _, point := range points {
		if at := End(point.At, step); at != end {
			flush()
			end = at
		}
		sum.Add(point.Samples, Of(point.Average), Of(point.Max))
	}
	flush()
	return out
}

// End returns the end of the step in which a time lies: the first multiple of the step that is not before it.
func End(at, step int64) int64 { return (at + step - 1) / step * step }
