// Package kept shows an answer again where nothing has changed that it was made from. Before an answer is shown again, one
// statement proves by which rights and from which versions of which rows the caller would be answered now (tx.Proof); only
// where both are what they were when the answer was made, for the same document and variables, its bytes are sent, whoever
// was answered first. Everything else is answered by graph/plain, which reads the rows. See docs/adr/0126.
//
// An answer is kept only where every object in it stands in the proved rows: covered is the list of the fields that lead
// from one object to others, and a document with any other is never kept.
package kept
