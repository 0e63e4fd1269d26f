package queue

// The statements, for the test of what they cost.
var (
	ClaimSQL      = claimSQL
	ClaimSettings = claimSettings
	NextBesideSQL = nextBesideSQL
)
