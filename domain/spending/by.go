package spending

// By is by what costs are shared out.
type By string

// The ways.
const (
	ByTenant    By = "TENANT"
	ByProject   By = "PROJECT"
	ByApp       By = "APP"
	ByMeter     By = "METER"
	ByInstance  By = "INSTANCE"
	ByMember    By = "MEMBER"
	ByOperation By = "OPERATION"
	ByVolume    By = "VOLUME"
	ByPerson    By = "PERSON"
	ByLabel     By = "LABEL"
	ByHour      By = "HOUR"
	ByDay       By = "DAY"
	ByBorne     By = "PLATFORM_BORNE"
)

// Values lists every By as it is published.
func (By) Values() []string {
	return []string{string(ByTenant), string(ByProject), string(ByApp), string(ByMeter), string(ByInstance),
		string(ByMember), string(ByOperation), string(ByVolume),
		string(ByPerson), string(ByLabel), string(ByHour), string(ByDay), string(ByBorne)}
}
