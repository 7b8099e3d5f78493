package event

import (
	"bytes"
	"encoding/json"
)

// Encode writes the body of an event exactly as ECMAScript's JSON.stringify would after a parse, so that a receiver
// may verify the signature over either: no white space, keys in order, nothing escaped that need not be.
func Encode(p Payload) ([]byte, error) {
	return Canonical(struct {
		Event Kind    `json:"event"`
		Data  Payload `json:"data"`
	}{p.Kind(), p})
}

// Canonical encodes any value in that form.
func Canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return raw(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// escapes are what encoding/json writes as \u although JSON.stringify does not: the line separators, always, and the
// replacement character where the text was not valid UTF-8.
var escapes = []struct{ escaped, plain string }{
	{`\u2028`, "\u2028"}, {`\u2029`, "\u2029"}, {`\ufffd`, "\ufffd"},
}

// raw undoes those escapes. A backslash that is itself escaped is stepped over, so that text which merely looks like
// an escape stays as it is.
func raw(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u`)) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			i++
			continue
		}
		plain, n := unescape(b[i:])
		out = append(out, plain...)
		i += n
	}
	return out
}

func unescape(b []byte) (plain []byte, n int) {
	for _, e := range escapes {
		if bytes.HasPrefix(b, []byte(e.escaped)) {
			return []byte(e.plain), len(e.escaped)
		}
	}
	return b[:2], 2
}
