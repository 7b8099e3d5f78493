package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A test far over its budget counts only if no run of it was faster. A run that failed is no measurement.
func TestRecords_SlowTestCountsByItsShortestRun(t *testing.T) {
	s := &suite{slowness: 1, records: filepath.Join(t.TempDir(), "records")}
	lines := `{"test":"TestA/sqlite","seconds":100,"budget":30}
{"test":"TestB","seconds":91,"budget":30}
{"test":"TestB","seconds":1,"budget":30,"failed":true}
`
	for _, c := range []struct {
		added string
		want  int
	}{{"", 2}, {`{"test":"TestA/sqlite","seconds":10,"budget":30}` + "\n", 1}} {
		lines += c.added
		if err := os.WriteFile(s.records, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.tooSlow(); len(got) != c.want {
			t.Errorf("after %q: %d are too slow, want %d", c.added, len(got), c.want)
		}
	}
	p := fed(t, `{"Action":"pass","Package":"p","Test":"TestA/sqlite"}`)
	s.parts = []*part{p}
	if got, n, ok := s.find("TestA/sqlite"); !ok || got != p || n.root() != (testName{"p", "TestA"}) {
		t.Errorf("found %v in %v", n, got)
	}
}
