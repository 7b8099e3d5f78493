package memory

import (
	"encoding/binary"
	"sort"
)

// termCount is a word of a passage and how often it occurs there.
type termCount struct {
	term  Term
	count uint8
}

// countTerms counts the words of a text, in ascending order of term.
func countTerms(terms []Term) []termCount {
	n := map[Term]uint8{}
	for _, t := range terms {
		if n[t] < 255 {
			n[t]++
		}
	}
	out := make([]termCount, 0, len(n))
	for t, c := range n {
		out = append(out, termCount{t, c})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].term < out[j].term })
	return out
}

// encodeTerms encodes counted words in five bytes each.
func encodeTerms(terms []termCount) []byte {
	out := make([]byte, 0, 5*len(terms))
	for _, t := range terms {
		out = binary.LittleEndian.AppendUint32(out, uint32(t.term))
		out = append(out, t.count)
	}
	return out
}

// decodeTerms decodes the result of encodeTerms.
func decodeTerms(b []byte) []termCount {
	out := make([]termCount, 0, len(b)/5)
	for ; len(b) >= 5; b = b[5:] {
		out = append(out, termCount{Term(binary.LittleEndian.Uint32(b)), b[4]})
	}
	return out
}

// unique removes repeated words.
func unique(terms []Term) []Term {
	seen := map[Term]bool{}
	var out []Term
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}
