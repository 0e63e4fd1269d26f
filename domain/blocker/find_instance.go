package blocker

import "github.com/gpuaas/app-platform/domain/lifecycle"

func instanceFailed(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.Status != lifecycle.InstanceFailed || in.Open {
		return nil
	}
	return []finding{{subject: string(in.ID), since: in.FailedAt, words: []string{"reason", in.Failure}}}
}

func memberFailed(f *Facts) []finding {
	if f.Instance == nil || f.Instance.Open || f.Instance.Status != lifecycle.InstanceRunning {
		return nil
	}
	var found []finding
	for _, member := range f.Members {
		if member.Status == lifecycle.MemberFailed {
			found = append(found, finding{subject: string(member.ID), since: member.Changed,
				words: []string{"member", member.Name, "reason", after(": ", member.Reason)}})
		}
	}
	return found
}

// after returns a text behind its mark, to end a sentence with; empty for an empty text.
func after(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

func repairStopped(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.RepairStopped == "" || in.Status != lifecycle.InstanceRunning {
		return nil
	}
	return []finding{{subject: string(in.ID), since: in.HealthSince, words: []string{"reason", in.RepairStopped}}}
}

// operationFailed leaves out a failed launch: its instance is FAILED, which instanceFailed reports, and a launch is
// not tried again.
func operationFailed(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.Open || in.Last == nil || in.Last.State != lifecycle.OperationFailed ||
		in.Last.Kind == lifecycle.InstanceCreate {
		return nil
	}
	owner := in.Last.Owner
	if owner == "" {
		owner = OwnerPlatform
	}
	return []finding{{subject: string(in.Last.ID), since: in.Last.Ended, owner: owner,
		words: []string{"operation", string(in.Last.ID), "kind", words(in.Last.Kind), "reason",
			in.Last.Code + ": " + in.Last.Message, "way", byForce(in.Last.Kind)}}}
}

// byForce returns the way out of an operation that keeps failing, where its kind has one.
func byForce(kind lifecycle.OperationKind) string {
	if !kind.Effects().Forcible {
		return ""
	}
	return "; with force it continues without what does not answer or refuses, and lists what it could not verify"
}

func orphanLeft(f *Facts) []finding {
	var found []finding
	for _, orphan := range f.Orphans {
		owner, next, reason := orphan.Owner, orphan.Next, orphan.Message
		if owner == "" {
			owner = OwnerPlatform
		}
		if orphan.LastError != "" {
			reason += " (" + orphan.LastError + ")"
		}
		what := "something may be left on a node"
		if orphan.Kind == lifecycle.OrphanAllocation {
			what = "an allocation is still reserved that no one requested to keep"
		}
		found = append(found, finding{subject: string(orphan.ID), since: orphan.Created, next: &next, owner: owner,
			words: []string{"what", what, "reason", reason}})
	}
	return found
}

func drifted(f *Facts) []finding {
	if f.Instance == nil {
		return nil
	}
	var found []finding
	for _, drift := range f.Instance.Drift {
		subject := drift.MemberID
		if subject == "" {
			subject = string(f.Instance.ID)
		}
		found = append(found, finding{subject: subject, since: drift.Since, words: []string{"what", drift.Message}})
	}
	return found
}

// callsNarrowed finds a version from before its adapter's calls were narrowed: what the adapter runs to observe it is
// refused.
func callsNarrowed(f *Facts) []finding {
	in := f.Instance
	if in == nil || f.Adapter == nil || !f.Adapter.Narrow || in.Inspects || in.Status != lifecycle.InstanceRunning ||
		in.Health == lifecycle.HealthHealthy {
		return nil
	}
	return []finding{{subject: string(in.ID), since: in.HealthSince,
		words: []string{"adapter", f.Adapter.Name, "version", in.AppVersion}}}
}

func unhealthy(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.Status != lifecycle.InstanceRunning || in.Health == lifecycle.HealthHealthy || !in.Observed {
		return nil
	}
	found := finding{subject: string(in.ID), since: in.HealthSince, key: family + "member.replace"}
	way := "if it does not clear by itself, replace the unhealthy members: planReplaceMember, then replaceMember"
	for _, member := range f.Members {
		if member.Status == lifecycle.MemberFailed {
			found.key, way = "", "bring back the failed members: recoverMember, or planReplaceMember and replaceMember"
		}
	}
	found.words = []string{"health", words(in.Health), "reason", after(": ", in.HealthMessage), "way", way}
	return []finding{found}
}

func entitlementEnded(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.EntitlementEnded == nil || in.Status == lifecycle.InstanceStopping ||
		in.Status == lifecycle.InstanceStopped {
		return nil
	}
	return []finding{{subject: in.AppSlug, since: *in.EntitlementEnded, words: []string{"app", in.AppSlug}}}
}

func manifestRetired(f *Facts) []finding {
	in := f.Instance
	if in == nil || in.ManifestStage != lifecycle.StageRetired || in.Status != lifecycle.InstanceRunning {
		return nil
	}
	return []finding{{subject: in.AppSlug, since: in.Created,
		words: []string{"app", in.AppSlug, "version", in.AppVersion}}}
}
