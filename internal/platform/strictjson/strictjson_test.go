package strictjson

import (
	"slices"
	"strings"
	"testing"
)

func listed(all []Fault) (out []string) {
	for _, f := range all {
		out = append(out, f.Field+" "+f.Code)
	}
	return out
}

func TestCheck_FaultsOfEveryDepth(t *testing.T) {
	t.Parallel()
	for document, want := range map[string][]string{
		`{"a":1,"b":[{"a":1},{"a":2}],"c":{"a":null}}`: nil,
		`{"a":1,"a":2}`: {"a repeated"},
		`{"a":1,"\u0061":2,"b":{"c":[0,{"d":1,"d":1}]}}`:     {"a repeated", "b.c[1].d repeated"},
		"{\"a\":\"\xff\",\"b\xc3\":1}":                       {"a invalid_utf8", "b\ufffd invalid_utf8"},
		`{"a":"\ud800","b":"\udc00","c":"\ud83d\ude00"}`:     {"a unpaired_surrogate", "b unpaired_surrogate"},
		`{"a":"\ud83d\ud83d\ude00","b":"\\ud800"}`:           {"a unpaired_surrogate"},
		`{"a":"\ud83dx\ude00","b":"\ud83d\n"}`:               {"a unpaired_surrogate", "b unpaired_surrogate"},
		`["x\ud800"]`:                                        {"[0] unpaired_surrogate"},
		` "\ude00" `:                                         {"body unpaired_surrogate"},
		`{ "a" : [ ] , "b" : { } , "c" : "\"" , "a" : 1e5 }`: {"a repeated"},
		`{"a":`: nil, "": nil, "12": nil, "[]": nil,
	} {
		if got := listed(Check([]byte(document))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
	if got := Check([]byte("{" + strings.Repeat(`"a":1,`, 1000) + `"a":1}`)); len(got) != maxFaults {
		t.Errorf("%d faults", len(got))
	}
}

func TestMembers_ExactNames(t *testing.T) {
	t.Parallel()
	type base struct {
		Kept string `json:"kept"`
	}
	type document struct {
		base
		Name string          `json:"name,omitempty"`
		Deep []base          `json:"deep"`
		By   map[string]base `json:"by"`
		Any  map[string]any  `json:"any"`
		Raw  string          `json:"-"`
	}
	text := `{"name":"a","Name":"b","kept":"c","Deep":[],"deep":[{"KEPT":1}],"by":{"X":{"\u212aept":1},"x":{"kept":2}},"any":{"A":1,"a":2},"raw":1}`
	want := []string{"Deep unknown_field", "Name unknown_field", "by.X.\u212aept unknown_field", "deep[0].KEPT unknown_field", "raw unknown_field"}
	got := listed(Members([]byte(text), &document{}))
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := listed(Variants([]byte(text), &document{})); !slices.Equal(got, want[:4]) {
		t.Errorf("variants %q, want %q", got, want[:4])
	}
}
