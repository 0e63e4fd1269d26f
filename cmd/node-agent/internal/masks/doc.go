// Package masks hides the secrets that the platform issued to a member in what the member's processes print.
//
// A secret is found as its bytes, in base64 (both alphabets, with and without padding, at any place in a longer text),
// percent-encoded, and as a JSON string. Of a secret of several lines each line is found by itself. What is shorter
// than minSecret is not hidden: it would hide every other word. Nor is a secret that a process has changed in another
// way: masks guard against accidents, not against a program that discloses a secret on purpose.
//
// The values are kept beside the member on the node, sealed to the node's own key, for as long as the member is there:
// an agent that is started again must hide what its predecessor handed over.
package masks
