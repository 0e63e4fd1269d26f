// Package parts holds the steps that kinds of operation share: dispatch, waiting, the agents' evidence (probes that
// pass, residue that is not there), and taking back what was half done. Package steps puts them together, one kind in
// each file.
package parts
