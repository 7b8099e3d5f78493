// Package locality returns the place of a telephone number: the town or the area of its prefix. It searches the embedded table as it is, so
// that nothing is loaded and no memory is used.
package locality

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"sort"
	"strconv"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// file holds the prefixes and places of libphonenumber in English (Apache 2.0). make golden writes it from the library in go.mod.
//
//go:embed localities.bin
var file []byte

// The layout of the file. All numbers are little-endian.
//
//	uint32 length of each of the first three parts
//	index      for each block of prefixes: its first prefix, and where it starts in the prefixes, each uint32
//	prefixes   sorted, each with its difference from the one before it in the block (uvarint) and its place (uint16)
//	nameIndex  where each block of names starts in the names, uint32
//	names      of the places, each with a line feed at its end
const (
	headerSize  = 3 * 4
	blockSize   = 64 // prefixes in a block, and names in a block
	longestCode = 9  // digits of the longest prefix
)

// table is the file in its parts.
type table struct{ index, prefixes, nameIndex, names []byte }

var places = split(file)

func split(b []byte) (t table) {
	lengths, b := b[:headerSize], b[headerSize:]
	for i, part := range []*[]byte{&t.index, &t.prefixes, &t.nameIndex} {
		n := binary.LittleEndian.Uint32(lengths[4*i:])
		*part, b = b[:n], b[n:]
	}
	t.names = b
	return t
}

// Of returns the place of a number: that of its longest known prefix, else the name of its country, in English. It is empty if neither is
// known.
func Of(n *phonenumbers.PhoneNumber) string {
	digits := phonenumbers.Format(n, phonenumbers.E164)[1:]
	for length := min(longestCode, len(digits)); length > 0; length-- {
		prefix, err := strconv.ParseUint(digits[:length], 10, 32)
		if err != nil {
			return ""
		}
		if place, ok := places.find(uint32(prefix)); ok {
			return places.name(place)
		}
	}
	country, err := language.ParseRegion(phonenumbers.GetRegionCodeForNumber(n))
	if err != nil {
		return ""
	}
	return display.Regions(language.English).Name(country)
}

// find returns the place of a prefix.
func (t table) find(prefix uint32) (place int, ok bool) {
	const entry = 8
	block := sort.Search(len(t.index)/entry, func(i int) bool { return binary.LittleEndian.Uint32(t.index[entry*i:]) > prefix }) - 1
	if block < 0 {
		return 0, false
	}
	at := binary.LittleEndian.Uint32(t.index[entry*block:])
	rest := t.prefixes[binary.LittleEndian.Uint32(t.index[entry*block+4:]):]
	for range blockSize {
		difference, n := binary.Uvarint(rest)
		if n <= 0 {
			break
		}
		if at += uint32(difference); at >= prefix {
			return int(binary.LittleEndian.Uint16(rest[n:])), at == prefix
		}
		rest = rest[n+2:]
	}
	return 0, false
}

// name returns the name of a place.
func (t table) name(place int) string {
	rest := t.names[binary.LittleEndian.Uint32(t.nameIndex[4*(place/blockSize):]):]
	for range place % blockSize {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	return string(rest[:bytes.IndexByte(rest, '\n')])
}
