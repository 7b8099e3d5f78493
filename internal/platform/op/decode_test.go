package op_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
)

// https://github.com/golang/go/issues/14750
// https://github.com/danielgtaylor/huma/issues/577
func TestBody_NamesExactAndOnce(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, p := newThings(t, d)
	for body, want := range map[string][]string{
		`{"name":"good","n":5,"N":86400}`:                                            {"unknown_field", "N unknown_field"},
		`{"name":"good","NAME":"x","Kind":"z","deep":{"Secret":1}}`:                  {"unknown_field", "NAME unknown_field", "Kind unknown_field", "deep.Secret unknown_field"},
		`{"name":"good","\u212aind":"z"}`:                                            {"unknown_field", "\u212aind unknown_field"},
		`{"Name":"good"}`:                                                            {"unknown_field", "Name unknown_field", "name required"},
		`{"name":"good","n":5,"n":86400}`:                                            {"malformed_json", "n repeated"},
		`{"name":"good","n":5,"\u006e":86400,"deep":{"secret":"a","secret":"long"}}`: {"malformed_json", "n repeated", "deep.secret repeated"},
	} {
		api.Do(p, "POST", "/things", body).Want(400).Refused(want[0], want[1:]...)
	}
	api.Do(p, "PATCH", "/things/1", `{"Name":"a"}`).Want(400).Refused("unknown_field", "Name unknown_field")
	api.Do(p, "PATCH", "/things/1", `{"name":"a","name":null}`).Want(400).Refused("malformed_json", "name repeated")
	if n := rows(t, d, "things"); n != 0 {
		t.Errorf("%d things were made", n)
	}
}

// https://github.com/Mnexa-AI/e2a/issues/804
func TestBody_NotUnicode(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, api, p := newThings(t, d)
	api.Do(p, "POST", "/things", "{\"name\":\"caf\xe9\"}").Want(400).Refused("malformed_json", "name invalid_utf8")
	api.Do(p, "POST", "/things", `{"name":"x\ud800"}`).Want(400).Refused("malformed_json", "name unpaired_surrogate")
	for _, charset := range []string{"iso-8859-1", "UTF-16", `"windows-1252"`} {
		api.Do(p, "POST", "/things", `{"name":"good"}`, "Content-Type: application/json; charset="+charset).Want(415).Refused("unsupported_media_type")
	}
	if n := rows(t, d, "things"); n != 0 {
		t.Errorf("%d things were made", n)
	}
	api.Do(p, "GET", "/things?name=%ff", nil).Want(400).Refused("invalid_query", "name invalid_value")
	for _, id := range []string{"%ff", "a%00", "%ed%a0%80"} {
		api.Do(p, "GET", "/things/"+id, nil).Want(400).Refused("invalid_query", "path invalid_value")
	}
	api.Do(p, "POST", "/things", `{"name":"\ud83d\ude00x"}`, "Content-Type: application/json; charset=UTF-8").Want(201)
}

// https://github.com/Badgerati/Pode/issues/1604
func TestBody_ByteOrderMark(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	api.Do(p, "POST", "/things", "\ufeff"+`{"name":"good"}`).Want(201)
	api.Do(p, "POST", "/things", "\ufeff"+`{"name":"good","n":5,"n":86400}`).Want(400).Refused("malformed_json", "n repeated")
	api.Do(p, "POST", "/things", "\ufeff\ufeff"+`{"name":"good"}`).Want(400)
}

func TestDecodeStrict_Errors(t *testing.T) {
	t.Parallel()
	type document struct {
		Name string  `json:"name"`
		N    int     `json:"n"`
		Rate float64 `json:"rate"`
	}
	for body, want := range map[string]string{
		`{"name":"a","NAME":"b"}`: "unknown_field: NAME: unexpected property; known are n, name, rate",
		`{"name":"a","name":"b"}`: "malformed_json: name: is given more than once",
		`{"n":"x"}`:               "validation_failed: n: must be a whole number",
		`{"rate":true}`:           "validation_failed: rate: must be a number",
		`[]`:                      "validation_failed: body: must be an object",
		`null`:                    "validation_failed: body: must be an object",
		`{`:                       "malformed_json: the body is no JSON",
	} {
		if err := op.DecodeStrict([]byte(body), &document{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// A compressed body is refused as one, before anybody tries to read it.
func TestContentEncoding_Refused(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for _, coding := range []string{"gzip", "br", "deflate", "zstd", "gzip, identity"} {
		a := api.Do(p, "POST", "/things", body("good"), "Content-Encoding: "+coding).Want(415).Refused("unsupported_media_type")
		if a.Header.Get("Accept-Encoding") != "identity" || !strings.Contains(a.Text("detail"), "Content-Encoding") {
			t.Errorf("%s: %s %v", coding, a.Bytes, a.Header)
		}
	}
	api.Do(p, "POST", "/things", body("good"), "Content-Encoding: identity").Want(201)
}

// A number without a fraction is an integer, and no error names types of Go (https://github.com/dmtrKovalenko/fff/issues/328).
func TestNumbers_WithoutFraction(t *testing.T) {
	t.Parallel()
	_, api, p := newThings(t, dbtest.SQLite(t))
	for _, n := range []string{"5", "5.0", "5.000", "5e0", "0.5e1", "50E-1"} {
		if a := api.Do(p, "POST", "/things", `{"name":"good","n":`+n+`}`).Want(201); a.At("n") != float64(5) {
			t.Errorf("%s: %s", n, a.Bytes)
		}
		api.Do(p, "GET", "/things?limit="+url.QueryEscape(n), nil).Want(200)
	}
	for _, n := range []string{"5.5", "1e400", "99999999999999999999", "1e30", `"5"`, "true", "[]", "{}"} {
		a := api.Do(p, "POST", "/things", `{"name":"good","n":`+n+`}`)
		if a.Status != 422 && a.Status != 400 || goType.MatchString(string(a.Bytes)) {
			t.Errorf("%s: %d %s", n, a.Status, a.Bytes)
		}
	}
	for _, limit := range []string{"5.5", "x", "1e30", "99999999999999999999"} {
		if a := api.Do(p, "GET", "/things?limit="+limit, nil); a.Status != 422 && a.Status != 400 || goType.MatchString(string(a.Bytes)) {
			t.Errorf("limit=%s: %d %s", limit, a.Status, a.Bytes)
		}
	}
	for _, text := range []string{`[]`, `"x"`, `5`, `null`, `{"name":5}`, `{"name":"good","deep":[]}`, `{"name":"good","deep":{"secret":1}}`, `{"name":["a"]}`} {
		if a := api.Do(p, "POST", "/things", text); a.Status < 400 || goType.MatchString(string(a.Bytes)) {
			t.Errorf("%s: %d %s", text, a.Status, a.Bytes)
		}
	}
}

// goType matches what errors of Go's decoders say.
var goType = regexp.MustCompile(`json:|strconv|unmarshal|Go (struct|value)|of type (u?int|float|string|bool|\[|map)|int64|\*\w+\.\w+`)
