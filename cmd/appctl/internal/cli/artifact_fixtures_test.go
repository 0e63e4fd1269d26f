package cli_test

import (
	"maps"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

// addDeliveryFixtures gives the stand-in what publishers see: an artifact whole, a version with its evidence, a canary.
func addDeliveryFixtures(s *clienttest.Server) {
	step := object{
		"id": "prm_1", "objectId": "man_1", "from": "STAGED", "to": "CANARY", "canaryPercent": 20, "reason": "careful",
		"actor": object{"kind": "USER", "id": "usr_1", "name": "Ada"}, "createdAt": at,
	}
	whole := object{
		"__typename": "Artifact", "id": "art_1", "name": "controller", "ref": "registry/hello@sha256:abc",
		"digest": "sha256:abc", "sizeBytes": 123456789,
		"stage": "STAGED", "kind": "IMAGE", "platforms": []string{"linux/amd64"}, "signature": "UNTRUSTED",
		"quarantinedAt":    at,
		"quarantineCode":   "SIGNATURE_UNTRUSTED",
		"quarantineReason": "a signature is by a key that the source does not trust",
		"source":           object{"id": "src_1", "name": "team", "location": "registry/team"},
		"parts": []object{
			{"role": "MANIFEST", "digest": "sha256:abc", "mediaType": "application/vnd.oci.image.manifest.v1+json",
				"sizeBytes": 500},
			{"role": "LAYER", "digest": "sha256:def", "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
				"sizeBytes": 123456289},
		},
		"pinnedBy": []object{manifest()}, "history": []object{step},
	}
	version := maps.Clone(manifest())
	maps.Copy(version, object{
		"__typename": "Manifest", "displayName": "Hello", "artifactKind": "controller", "canaryPercent": 20,
		"stage":     "CANARY",
		"artifacts": []object{whole}, "history": []object{step},
		"lacks": []object{{"code": "EVIDENCE_MISSING", "message": "a report of the conformance suite for this build"}},
		"reports": []object{{"id": "evd_1", "manifestId": "man_1", "kind": "TENANCY", "digest": "sha256:eee",
			"passed": true, "submittedBy": "Ada", "runnerId": "rnr_1", "createdAt": at}},
	})
	s.Handle("node", func(call clienttest.Call) (any, error) {
		if call.Args["id"] == "art_1" {
			return whole, nil
		}
		if call.Args["id"] == "man_1" {
			return version, nil
		}
		if call.Args["id"] == "gap_1" {
			return gapIn("OPEN", nil), nil
		}
		return nil, &clienttest.Fault{Code: "NOT_FOUND", Message: "there is no such object"}
	})
	arm := object{"manifest": version, "launches": 12, "failed": 3, "pending": 1, "failureRate": 0.25, "operations": 4,
		"operationsFailed": 0, "timeToRunningP50": 4.5}
	for field, value := range map[string]any{
		"artifact":           whole,
		"verifyArtifact":     whole,
		"quarantineArtifact": whole,
		"releaseArtifact":    whole,
		"manifests":          page(manifest()),
		"setCanaryPercent":   version,
		"evidenceRunners": []object{{"id": "rnr_1", "name": "ci", "publicKey": "cHVibGlj", "createdAt": at,
			"revokedAt": nil, "revokeReason": ""}},
		"registerRunner": object{"id": "rnr_1", "name": "ci", "publicKey": "cHVibGlj", "createdAt": at,
			"revokedAt": nil, "revokeReason": ""},
		"revokeRunner": object{"id": "rnr_1", "name": "ci", "publicKey": "cHVibGlj", "createdAt": at, "revokedAt": at,
			"revokeReason": "stolen"},
		"setPromotionTerms": object{"id": "app_1", "slug": "hello", "promotionTerms": object{
			"minLaunches": 3, "minMinutes": 30, "graceHours": 0, "secondApprover": true}},
		"submitEvidence": object{"id": "evd_1", "manifestId": "man_1", "kind": "TENANCY", "digest": "sha256:eee",
			"passed": true, "submittedBy": "Ada", "runnerId": "rnr_1", "createdAt": at},
		"canaryReport": object{
			"percent": 20, "startedAt": at, "verdict": "WORSE", "haltedAt": at, "haltReason": "it fails more often",
			"canary": arm, "active": arm,
			"points": []object{{"at": at, "evidence": 5.1}}, "threshold": 4.6,
		},
	} {
		s.Handle(field, answer(value))
	}
}
