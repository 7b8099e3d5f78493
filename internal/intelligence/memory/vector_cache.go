package memory

import (
	"encoding/binary"
	"slices"
)

// vectorCache holds the vectors and words of an index's first passages, so that ranking them reads nothing from the
// database: about 330 bytes each with the builtin embedding. Parts are append-only: data that was read stays
// unchanged when more is added.
type vectorCache struct {
	parts []cachePart
	n     int
	bytes int
	full  bool // the limit is reached
}

// partSize is the number of passages of a part.
const partSize = 4096

// cachePart holds consecutive passages.
type cachePart struct {
	scales  []float32 // of vectors
	ends    []uint32  // end of each vector in values, ascending: a passage without a vector has the end of the one before
	values  []int8
	wordEnd []uint32 // end of each passage in words
	words   []byte
}

// add appends a passage; numbers are the ids of its words, shifted left by 8, with the count in the lowest byte.
func (k *vectorCache) add(v quantised, numbers []uint64) {
	if k.n%partSize == 0 {
		k.parts = append(k.parts, cachePart{})
	}
	p := &k.parts[len(k.parts)-1]
	before := cap(p.values) + cap(p.words)
	p.scales = append(p.scales, v.scale)
	p.values = append(p.values, v.values...)
	p.ends = append(p.ends, uint32(len(p.values)))
	p.words = appendWords(p.words, numbers)
	p.wordEnd = append(p.wordEnd, uint32(len(p.words)))
	k.n++
	k.bytes += cap(p.values) + cap(p.words) - before + 12
}

// get returns the vector and the words of a passage; words are appended to room.
func (k *vectorCache) get(at int, terms []Term, room []termCount) (quantised, []termCount) {
	p, i := &k.parts[at/partSize], at%partSize
	from, wordFrom := uint32(0), uint32(0)
	if i > 0 {
		from, wordFrom = p.ends[i-1], p.wordEnd[i-1]
	}
	v := quantised{scale: p.scales[i], values: p.values[from:p.ends[i]:p.ends[i]]}
	return v, readWords(p.words[wordFrom:p.wordEnd[i]], terms, room)
}

// appendWords encodes the sorted ids of words as differences. The lowest bit is set if a count follows, for a word
// that occurs more than once.
func appendWords(b []byte, numbers []uint64) []byte {
	slices.Sort(numbers)
	last := uint64(0)
	for _, n := range numbers {
		number, count := n>>8, byte(n)
		step := (number - last) << 1
		last = number
		if count == 1 {
			b = binary.AppendUvarint(b, step)
			continue
		}
		b = append(binary.AppendUvarint(b, step|1), count)
	}
	return b
}

// readWords decodes the result of appendWords.
func readWords(b []byte, terms []Term, room []termCount) []termCount {
	number := uint64(0)
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		b = b[n:]
		number += step >> 1
		t := termCount{terms[number], 1}
		if step&1 == 1 {
			t.count, b = b[0], b[1:]
		}
		room = append(room, t)
	}
	return room
}
