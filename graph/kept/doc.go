// Package kept sends an answer again while nothing has changed that it was read from. Before that, one statement proves
// by which rights and from which versions of which rows the caller would be answered now (tx.Proof). Only where both
// are what they were for the kept answer, with the same document and variables, its bytes are sent, whichever caller
// was answered first. Everything else is answered by graph/plain, which reads the rows. See docs/adr/0126.
//
// An answer is kept only where every object in it is in the proved rows: covered is the list of the fields that lead
// from one object to others, and a document with any other is never kept.
package kept
