package lifecycle

// GapKind is what the platform lacks for an app: the five kinds of the gap log's template.
type GapKind string

// The kinds.
const (
	// GapPrimitive is something that every app would need, and that the platform does not have.
	GapPrimitive GapKind = "MISSING_PRIMITIVE"
	// GapCoupling is one app's own affair that leaks into the platform, or the platform's into an app.
	GapCoupling GapKind = "LEAKY_COUPLING"
	// GapKey is a permission key or a rule of policy that cannot be named.
	GapKey GapKind = "MISSING_KEY"
	// GapEvent is something that happens and that triage finds no event of.
	GapEvent GapKind = "MISSING_EVENT"
	// GapBilling is use that no tenant can be billed for.
	GapBilling GapKind = "MISSING_BILLING_HOOK"
)

// Values lists every GapKind as it is stored and published.
func (GapKind) Values() []string {
	return names(GapPrimitive, GapCoupling, GapKey, GapEvent, GapBilling)
}

// GapState is where an entry of the gap log is.
type GapState string

// The states of a gap. DECLINED and CLOSED are its ends.
const (
	GapOpen     GapState = "OPEN"
	GapAccepted GapState = "ACCEPTED"
	GapDeferred GapState = "DEFERRED"
	GapDeclined GapState = "DECLINED"
	GapClosed   GapState = "CLOSED"
)

// Values lists every GapState as it is stored and published.
func (GapState) Values() []string {
	return names(GapOpen, GapAccepted, GapDeferred, GapDeclined, GapClosed)
}

var gapMachine = table[GapState]{"gap", GapOpen, []Move[GapState]{
	{GapOpen, GapAccepted, "the platform's operators will close it"},
	{GapOpen, GapDeferred, "it waits until more apps need it"},
	{GapOpen, GapDeclined, "it is not the platform's, or not wanted"},
	{GapDeferred, GapAccepted, "more apps need it"},
	{GapDeferred, GapDeclined, "it is not wanted after all"},
	{GapAccepted, GapDeferred, "other accepted gaps come first"},
	{GapAccepted, GapClosed, "a release has closed it"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s GapState) CanMove(to GapState) error { return gapMachine.check(s, to) }

// Terminal reports whether no state follows.
func (s GapState) Terminal() bool { return gapMachine.terminal(s) }
