package event_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// alphabet holds text that encoders treat differently.
var alphabet = []string{"a", "Z", " ", "\"", "\\", "/", "<", ">", "&", "'", "\b", "\t", "\n", "\f", "\r", "\x00", "\x01", "\x1f", "\x7f",
	"é", "ß", "中", "\u2028", "\u2029", "\u0085", "\ufeff", "\ufffd", "😀", "👩‍👩‍👧", "\xff", "\xc3\x28", "\xed\xa0\x80", `\u2028`, `\\u2029`,
	`\ufffd`, "-0", ":-0,", "</script>", "{}", "[]", "null"}

func text(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

var floats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1.5, 4.4, 1e-6, 1e-7, 123456789.125, 1e20, 1e21, 1.7976931348623157e308, 5e-324,
	-0.5, 1 << 53}

// fill sets random values in all fields of a payload.
func fill(r *rand.Rand, v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *db.Time:
		*at = db.At(time.UnixMilli(r.Int64N(4e12)))
		return
	case *event.Metadata:
		*at = event.Metadata{}
		for range r.IntN(6) {
			(*at)[[]string{text(r), fmt.Sprint(r.IntN(300)), "4294967294", "4294967295", "01", "-1", "1.5",
				"__proto__"}[r.IntN(8)]] = text(r)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(r))
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<54) - 1<<53)
	case reflect.Float64:
		v.SetFloat(floats[r.IntN(len(floats))])
		if r.IntN(2) == 0 {
			v.SetFloat(r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20)))
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	}
}

// stringify replies to each line, a body as a JSON string, with JSON.stringify(JSON.parse(body)) as a JSON string.
const stringify = `require('readline').createInterface({input: process.stdin}).on('line',
	line => console.log(JSON.stringify(JSON.stringify(JSON.parse(JSON.parse(line))))))`

func TestEncode_EqualsJSONStringify(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	const bodies = 5000
	r := rand.New(rand.NewPCG(1, 2))
	want := make([]string, bodies)
	var in strings.Builder
	for i := range want {
		p := reflect.New(reflect.TypeOf(event.Payloads[i%len(event.Payloads)])).Elem()
		fill(r, p)
		body, err := event.Encode(p.Interface().(event.Payload))
		if err != nil {
			t.Fatal(err)
		}
		want[i] = string(body)
		line, _ := json.Marshal(want[i])
		in.Write(line)
		in.WriteByte('\n')
	}
	cmd := exec.Command(node, "-e", stringify)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<20)
	differ, seen := 0, 0
	for ; lines.Scan(); seen++ {
		var got string
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got != want[seen] {
			if differ++; differ <= 3 {
				t.Errorf("body %d\nours   %q\ntheirs %q", seen, want[seen], got)
			}
		}
	}
	if seen != bodies || differ > 0 {
		t.Errorf("%d of %d bodies differ, %d compared", differ, bodies, seen)
	}
}

func TestEncode_KeysInOrder(t *testing.T) {
	t.Parallel()
	b, err := event.Encode(event.CallEnded{CallID: "call_1", Tags: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"event":"call.ended","data":{"call_id":"call_1","from_number":"","talk_duration_seconds":0,"recording_url":null,"ai_summary":null,`
	if !strings.HasPrefix(string(b), want) || !strings.HasSuffix(string(b), `"tags":[],"contact":null,"quality":null,"enriched":false}}`) {
		t.Errorf("body %s", b)
	}
}

func TestKinds_Twelve(t *testing.T) {
	t.Parallel()
	seen := map[event.Kind]bool{}
	for _, p := range event.Payloads {
		seen[p.Kind()] = true
	}
	if len(seen) != 12 || len(event.Kinds()) != 12 {
		t.Errorf("%d kinds, want the twelve of the contract", len(seen))
	}
}
