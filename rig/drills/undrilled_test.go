package drills_test

// undrilled are the edges without a drill, each with the reason. It is empty: one is added only at a review.
var undrilled = map[string]string{}
