// Package oci runs launchable apps: one container per member, n members of one component, by the image and the runtime
// profile of a manifest. It knows no app: what is published for it runs.
//
//	FETCH_ARTIFACT  the image, as an OCI layout, and what its volumes hold; verified by the node
//	CLOUD_INIT      files and a command rendered here: podman makes the container from the layout, after its digest
//	START_PROCESS   the container in the foreground, so that the agent restarts it, and stops it as the image wants
//
// A release is an image with a setting; a member has one in use and, while its version changes, a second one. So the
// way back is always there until every member has changed. See templates/oci.sh for what happens on the node.
package oci
