package strictjson

import "testing"

func TestDamaged_TextsReplaced(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]struct{ without, short string }{
		"{\"a\":\"Gr\xfc\xdfe\",\"b\":[\"x\"]}":       {`{"a":null,"b":["x"]}`, `{"a":"Gre","b":["x"]}`},
		`{"a":[1,"ok \ud83d","\ud83d\ude00"], "b":2}`: {`{"a":[1,null,"\ud83d\ude00"], "b":2}`, `{"a":[1,"ok ","\ud83d\ude00"], "b":2}`},
		`"\uDE00"`:          {`null`, `""`},
		"{\"a\xff\":\"b\"}": {"{\"a\xff\":\"b\"}", "{\"a\xff\":\"b\"}"},
		"\xff":              {"\xff", "\xff"},
		`{"a":"\ufffd"}`:    {`{"a":"\ufffd"}`, `{"a":"\ufffd"}`},
		`{"a":"ü\\ud800"}`:  {`{"a":"ü\\ud800"}`, `{"a":"ü\\ud800"}`},
		"":                  {"", ""},
	} {
		if got := string(WithoutDamaged([]byte(document))); got != want.without {
			t.Errorf("%q without damaged texts is %q, want %q", document, got, want.without)
		}
		if got := string(ShortenDamaged([]byte(document))); got != want.short {
			t.Errorf("%q shortened is %q, want %q", document, got, want.short)
		}
	}
}
