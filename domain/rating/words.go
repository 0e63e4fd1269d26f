package rating

// PeriodStatus is how far a billing period is.
type PeriodStatus string

// A period is open while it lasts, closing while late usage is waited for, and then closed.
const (
	PeriodOpen    PeriodStatus = "OPEN"
	PeriodClosing PeriodStatus = "CLOSING"
	PeriodClosed  PeriodStatus = "CLOSED"
)

// Values lists every PeriodStatus as it is stored and published.
func (PeriodStatus) Values() []string {
	return []string{string(PeriodOpen), string(PeriodClosing), string(PeriodClosed)}
}

// StatementFormat is the form of an exported statement.
type StatementFormat string

// The formats.
const (
	JSON      StatementFormat = "JSON"
	CSV       StatementFormat = "CSV"
	Parquet   StatementFormat = "PARQUET"
	FocusCSV  StatementFormat = "FOCUS_CSV"
	FocusJSON StatementFormat = "FOCUS_JSON"
)

// Values lists every StatementFormat as it is published.
func (StatementFormat) Values() []string {
	return []string{string(JSON), string(CSV), string(Parquet), string(FocusCSV), string(FocusJSON)}
}

// CapacityEffect is what becomes of rented capacity by a change.
type CapacityEffect string

// The effects. What is LEFT is rented on, though nothing of the change's instance lives there any more.
const (
	CapacityRented   CapacityEffect = "RENTED"
	CapacityKept     CapacityEffect = "KEPT"
	CapacityLeft     CapacityEffect = "LEFT"
	CapacityReleased CapacityEffect = "RELEASED"
)

// Values lists every CapacityEffect as it is published.
func (CapacityEffect) Values() []string {
	return []string{string(CapacityRented), string(CapacityKept), string(CapacityLeft), string(CapacityReleased)}
}
