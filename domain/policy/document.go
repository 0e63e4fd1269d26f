package policy

// Bounds of a document.
const (
	// MaxDocument is its length in bytes.
	MaxDocument = 64 << 10
	maxList     = 500
	maxWord     = 200
	maxCeiling  = 1_000_000_000
)

// Document is the rules of one overlay, read by Parse. The empty one holds no rule.
type Document struct {
	lists    [lists]words
	final    [lists][]string // of the platform's alone
	ceilings [ceilings]*int
	cost     *Cost
}

// words are an allow list, nil when everything is allowed, and a deny list. An allow list without a word lets nothing
// through.
type words struct{ allow, deny []string }

// Cost is money an hour.
type Cost struct {
	// AmountMicros is in millionths of the currency.
	AmountMicros int64
	// Currency is three capital letters, as ISO 4217 has them.
	Currency string
}
