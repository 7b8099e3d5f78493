package locality

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

var update = flag.Bool("update", false, "write localities.bin from the library")

// TestGolden_SameAsLibrary compares the table with the library: numbers of some of its prefixes, and of all countries. With -update it
// first writes the table.
func TestGolden_SameAsLibrary(t *testing.T) {
	t.Parallel()
	if *update {
		places = split(writeTable(t))
	}
	const step = 20
	r := rand.New(rand.NewPCG(1, 1))
	check := func(e164 string) {
		t.Helper()
		n, err := phonenumbers.Parse(e164, "")
		if err != nil {
			return
		}
		want, err := phonenumbers.GetGeocodingForNumber(n, "en")
		if got := Of(n); err == nil && got != want {
			t.Errorf("%s is in %q, the library says %q; if the library is newer: make golden", e164, got, want)
		}
	}
	prefixes := 0
	for i, p := range places.all() {
		if prefixes++; i%step == 0 {
			check(fmt.Sprintf("+%d%d", p, r.IntN(10_000_000)))
			check(fmt.Sprintf("+%d", p))
		}
	}
	if prefixes < 250_000 {
		t.Errorf("the table has %d prefixes", prefixes)
	}
	for country := range phonenumbers.GetSupportedRegions() {
		code := phonenumbers.GetCountryCodeForRegion(country)
		for range 10 {
			check(fmt.Sprintf("+%d%d", code, r.IntN(1_000_000_000)))
		}
		check(phonenumbers.Format(phonenumbers.GetExampleNumber(country), phonenumbers.E164))
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for e164, want := range map[string]string{"+442079460018": "London", "+12025550123": "Washington D.C.", "+390612345678": "Rome",
		"+4930123456": "Berlin", "+80012345678": "World"} {
		n, err := phonenumbers.Parse(e164, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(n); got != want {
			t.Errorf("%s is in %q, want %q", e164, got, want)
		}
	}
}

// all yields the prefixes of the table in order.
func (t table) all() func(yield func(int, uint32) bool) {
	return func(yield func(int, uint32) bool) {
		rest, at := t.prefixes, uint32(0)
		for i := 0; len(rest) > 0; i++ {
			if i%blockSize == 0 {
				at = binary.LittleEndian.Uint32(t.index[8*(i/blockSize):])
			}
			difference, n := binary.Uvarint(rest)
			at, rest = at+uint32(difference), rest[n+2:]
			if !yield(i, at) {
				return
			}
		}
	}
}

// writeTable writes localities.bin from the data of the library, and returns it.
func writeTable(t *testing.T) []byte {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nyaruka/phonenumbers").Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(folder)), "data/prefix_to_geocodings/en.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	table := encode(t, b)
	if err := os.WriteFile("localities.bin", table, 0o644); err != nil {
		t.Fatal(err)
	}
	return table
}

// encode returns the table for the data of the library: the length of the names (uint32), the names with line feeds between them, the
// number of prefixes (uint32), and for each its difference from the one before (uvarint) and its name (uint16).
func encode(t *testing.T, b []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	size := le.Uint32(b)
	names, b := strings.Split(string(b[4:4+size]), "\n"), b[4+size:]
	count, b := int(le.Uint32(b)), b[4:]
	var out table
	for i, name := range names {
		if i%blockSize == 0 {
			out.nameIndex = le.AppendUint32(out.nameIndex, uint32(len(out.names)))
		}
		out.names = append(append(out.names, name...), '\n')
	}
	prefix := uint64(0)
	for i := range count {
		difference, n := binary.Uvarint(b)
		if prefix += difference; n <= 0 || prefix > math.MaxUint32 || len(fmt.Sprint(prefix)) > longestCode {
			t.Fatalf("prefix %d of the library is %d", i, prefix)
		}
		if i%blockSize == 0 {
			out.index = le.AppendUint32(le.AppendUint32(out.index, uint32(prefix)), uint32(len(out.prefixes)))
			difference = 0
		}
		out.prefixes = append(binary.AppendUvarint(out.prefixes, difference), b[n:n+2]...)
		b = b[n+2:]
	}
	var header []byte
	for _, part := range [][]byte{out.index, out.prefixes, out.nameIndex} {
		header = le.AppendUint32(header, uint32(len(part)))
	}
	return bytes.Join([][]byte{header, out.index, out.prefixes, out.nameIndex, out.names}, nil)
}
