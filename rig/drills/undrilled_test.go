package drills_test

// undrilled are the edges without a drill, each with the reason. There is none: one is added at a review alone.
var undrilled = map[string]string{}
