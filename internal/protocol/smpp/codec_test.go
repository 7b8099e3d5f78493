package smpp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// allCommands returns all known commands and their responses.
func allCommands() []Command {
	all := []Command{GenericNack}
	for c := range commandNames {
		all = append(all, c)
		if c.expectsResponse() {
			all = append(all, c.Response())
		}
	}
	return all
}

// fillRandom sets the fields of a body to random values.
func fillRandom(v reflect.Value, r *rand.Rand, field string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillRandom(v.Field(i), r, v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", r.IntN(6)))
		if field == "MessageID" || field == "Digits" {
			v.SetString(strings.Repeat("7", r.IntN(65)))
		}
	case reflect.Uint8:
		v.SetUint(r.Uint64N(256))
	case reflect.Slice:
		n := r.IntN(5)
		if n == 0 {
			return
		}
		if field == "ShortMessage" {
			n = 1 + r.IntN(255)
		}
		s := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			fillRandom(s.Index(i), r, "")
		}
		v.Set(s)
	}
}

func TestPDU_RoundTrip(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, command := range allCommands() {
		for range 200 {
			p := PDU{Command: command, Status: Status(r.Uint32()), Sequence: r.Uint32(), Body: newBody(command)}
			if p.Body != nil {
				fillRandom(reflect.ValueOf(p.Body).Elem(), r, "")
			}
			if m, ok := p.Body.(*Message); ok && command == DataSM {
				*m = Message{ServiceType: m.ServiceType, Source: m.Source, Destination: m.Destination, ESMClass: m.ESMClass,
					RegisteredDelivery: m.RegisteredDelivery, DataCoding: m.DataCoding, TLVs: m.TLVs}
			}
			b, err := p.Encode()
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			back, err := Decode(b)
			if err != nil || !reflect.DeepEqual(back, p) {
				t.Fatalf("%s: %v\nwritten %#v\nread    %#v", command, err, p, back)
			}
		}
	}
}

// FuzzPDU: no octets cause a panic, and a decoded PDU is encoded and decoded to the same.
func FuzzPDU(f *testing.F) {
	for _, c := range allCommands() {
		b, err := PDU{Command: c, Sequence: 1, Body: newBody(c)}.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	long, _ := TextSettings{}.Parts(strings.Repeat("a€😀", 100), 7)
	for _, p := range long[:2] {
		b, _ := PDU{Command: SubmitSM, Sequence: 2, Body: Outgoing{To: ParseAddress("+4930123456"), Receipt: true}.message(p)}.Encode()
		f.Add(b)
	}
	b, _ := PDU{Command: DeliverSM, Body: &Message{ESMClass: 4, ShortMessage: []byte(Receipt{MessageID: "1"}.String()),
		TLVs: TLVs{receiptedID("a"), octetTLV(TagMessageState, 2)}}}.Encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err == nil {
			decodeAll(p)
		}
		if err != nil || p.Body == nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			if len(b) > MaxPDU-16 { // a NUL that was missing no longer fits
				return
			}
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%v\nread  %#v\nagain %#v", err, p, back)
		}
	})
}

// decodeAll decodes a message with all settings.
func decodeAll(p PDU) {
	m, ok := p.Body.(*Message)
	if !ok {
		return
	}
	for _, text := range []TextSettings{{}, {Default: GSMPacked}, {Default: Latin1}, {Default: ASCII, GSMAsIA5: true}} {
		m.receipt(text, IDs{Hex, Hex, Hex})
		if f, ok := text.fragment("", m); ok {
			text.incoming([]Fragment{f, f})
		}
	}
}

func TestDecode_MalformedStatus(t *testing.T) {
	t.Parallel()
	good, _ := PDU{Command: SubmitSM, Sequence: 9, Body: &Message{ShortMessage: []byte("hi"),
		TLVs: TLVs{wordTLV(TagSARReference, 1)}}}.Encode()
	for n := headerSize; n < len(good)-6; n++ {
		b := bytes.Clone(good[:n])
		binary.BigEndian.PutUint32(b, uint32(n))
		p, err := Decode(b)
		var bad *Malformed
		if !errors.As(err, &bad) || bad.Status != BadMessageLength || p.Sequence != 9 {
			t.Errorf("cut after %d octets: %v, %v", n, p, err)
		}
	}
	b := bytes.Clone(good)
	b[len(b)-3] = 200
	if _, err := Decode(b); err == nil || err.(*Malformed).Status != BadOptionalStream {
		t.Errorf("optional parameter beyond the end: %v", err)
	}
	many := &Message{}
	for range maxTLVs + 1 {
		many.TLVs = append(many.TLVs, octetTLV(1, 1))
	}
	b, _ = PDU{Command: DataSM, Body: many}.Encode()
	if _, err := Decode(b); err == nil {
		t.Error("too many optional parameters were read")
	}
	for _, length := range []uint32{0, 15, MaxPDU + 1, 1 << 31} {
		if _, err := read(bytes.NewReader(binary.BigEndian.AppendUint32(nil, length))); !errors.Is(err, ErrFrame) {
			t.Errorf("length %d: %v", length, err)
		}
	}
	if _, err := (PDU{Command: SubmitSM, Body: &Message{ShortMessage: make([]byte, 256)}}).Encode(); err == nil {
		t.Error("256 octets fitted into short_message")
	}
	if _, err := (PDU{Command: DataSM, Body: &Message{TLVs: TLVs{{TagMessagePayload, make([]byte, MaxPDU-20)}}}}).Encode(); err == nil {
		t.Error("a PDU of more than 64 KiB was written")
	}
}

// The octets equal those written by hand after §4.1.1.
func TestEncode_BindOctets(t *testing.T) {
	t.Parallel()
	b, err := PDU{Command: BindTransceiver, Sequence: 1, Body: &Bind{SystemID: "smppclient1", Password: "password",
		InterfaceVersion: 0x34}}.Encode()
	want := "0000002a" + "00000009" + "00000000" + "00000001" + hex.EncodeToString([]byte("smppclient1\x00password\x00\x00")) + "34" + "00" + "00" + "00"
	if err != nil || hex.EncodeToString(b) != want {
		t.Errorf("%v\n%x\n%s", err, b, want)
	}
}

func TestDecode_ShortResponses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "abc", "abc\x00"} {
		b := make([]byte, headerSize, 32)
		b = append(b, body...)
		binary.BigEndian.PutUint32(b, uint32(len(b)))
		binary.BigEndian.PutUint32(b[4:], uint32(SubmitSM.Response()))
		p, err := Decode(b)
		if err != nil || p.Body.(*MessageResponse).MessageID != strings.Trim(body, "\x00") {
			t.Errorf("%q: %v, %v", body, p.Body, err)
		}
	}
}

func TestSecret_NeverPrinted(t *testing.T) {
	t.Parallel()
	for _, v := range []any{&Bind{Password: "geheim"}, Bind{Password: "geheim"}, Config{Password: "geheim"}, Login{Password: "geheim"}, OutbindRequest{Password: "geheim"}} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, "geheim") {
				t.Errorf("%s", s)
			}
		}
	}
}
