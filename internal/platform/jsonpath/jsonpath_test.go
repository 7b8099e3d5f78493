package jsonpath

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const document = `{"data":[{"key":7,"org":{"name":" Co "},"phones":[{"value":"+1","type":"work"},{"value":"+2","type":"home"}],"first-name":"Ada","@odata.etag":"x",
	"ok":true,"none":null,"0":"zero","list":["a","",2]}],"deep":{"id":"d"},"Last Name":"L"}`

func TestParse_RFC9535AndEarlierSpelling(t *testing.T) {
	t.Parallel()
	var doc any
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"$.data[*].phones[0].value": "+1", "$.data[0].key": "7", "$.data[-1].ok": "true", `$['Last Name']`: "L", `$["data"][0]["phones"][1:].value`: "+2",
		"$.data[0].phones[?@.type=='home'].value": "+2", "$..value": "+1|+2", "$.data[0].phones.*.type": "work|home", "$.data[0].list": "a|2",
		`$.data[?@.key>5 && length(@.phones)==2].org.name`: "Co", // RFC 9535
		"data[*].phones[*].value":                          "+1|+2", "data[0].org.name": "Co", ".deep.id": "d", "[0]": "", "Last Name": "L", "$Last Name": "L", "data[0].first-name": "Ada",
		"data.0.key": "7", "data[0].0": "zero", "data.*.ok": "true", "$.data.0.first-name": "Ada", "deep..id.": "d", "none[*]": "", "data[9].key": "",
	} {
		p, err := Parse(path)
		if got := strings.Join(p.Texts(doc), "|"); err != nil || got != want {
			t.Errorf("%s selects %q, want %q: %v", path, got, want, err)
		}
	}
	for _, path := range []string{"", "$"} {
		if p, err := Parse(path); err != nil || !p.IsDocument() || fmt.Sprint(p.Values(doc)) != fmt.Sprint([]any{doc}) {
			t.Errorf("%q is not the document: %v", path, err)
		}
	}
}

func TestParse_ErrorsNamePosition(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a[b":                            "$.a[b: unexpected identifier at position 5",
		"$.a[?@.b=]":                     "invalid comparison operator at position 9",
		"$[?$.a]":                        "unsupported $ in a filter at position 4",
		"$..a..b":                        "unsupported second .., or .. in a filter at position 5",
		"$[?@..a]":                       "unsupported second .., or .. in a filter at position 5",
		"$['$..?',1]":                    "unsupported second selector in brackets at position 9",
		"$[?match(@.a, @.b)]":            "unsupported function at position 9",
		"$[?@.a][?@.a][?@.a][?@.a]":      "more than 3 filters at position 21",
		"$" + strings.Repeat("[0]", 21):  "a path may have 20 steps",
		strings.Repeat("x", maxLength+1): "a path may have 500 characters",
		"a[1x]":                          "at position",
		"a[0]b":                          "at position",
		"$.":                             "at position",
	} {
		if p, err := Parse(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v is not %q: %v", path, err, want, p)
		}
	}
}

func TestValues_Limited(t *testing.T) {
	t.Parallel()
	many := make([]any, 3*maxValues)
	if got := len(MustParse("$[*]").Values(many)); got != maxValues {
		t.Errorf("%d values", got)
	}
}
