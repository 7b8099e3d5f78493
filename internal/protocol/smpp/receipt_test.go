package smpp

import (
	"strings"
	"testing"
	"time"
)

func TestParseReceipt_Formats(t *testing.T) {
	t.Parallel()
	minute := time.Date(2012, 1, 12, 15, 51, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want Receipt
	}{
		{"id:0911897980 sub:001 dlvrd:000 submit date:1201121551 done date:1201121551 stat:UNDELIV err:075 text:-PROFILE",
			Receipt{MessageID: "0911897980", Parts: 1, Submitted: minute, Done: minute, State: Undeliverable, Error: "075", Text: "-PROFILE"}},
		{"id:a29f6845555647139e5c8f3b817f2c9a sub:001 dlvrd:001 submit date:120112155105 done date:120112155105 stat:DELIVRD err:000 text:",
			Receipt{MessageID: "a29f6845555647139e5c8f3b817f2c9a", Parts: 1, Delivered: 1, Submitted: minute.Add(5 * time.Second),
				Done: minute.Add(5 * time.Second), State: Delivered, Error: "000"}},
		{"id:1526758174 submit date:1201121551 done date:1201121551 stat:DELIVRD err:000 text:hellow",
			Receipt{MessageID: "1526758174", Submitted: minute, Done: minute, State: Delivered, Error: "000", Text: "hellow"}},
		{"id:rdwjwxns18krxr9936ey96ymcw sub:000 dlvrd:000 submit date:120112155100912+ done date:120112155100194+ stat:UNDELIV err:000",
			Receipt{MessageID: "rdwjwxns18krxr9936ey96ymcw", Submitted: minute, Done: minute, State: Undeliverable, Error: "000"}},
		{"ID: 17 SUB: 001 Submit Date: 20120112155100 Stat: DELIVERED Err: 0 Text: id:9 stat:FAILED",
			Receipt{MessageID: "17", Parts: 1, Submitted: minute, State: Delivered, Error: "0", Text: " id:9 stat:FAILED"}},
		{"id:7,stat:REJECTED,err:69", Receipt{MessageID: "7", State: Rejected, Error: "69"}},
		{"stat:EXPIRED id:7", Receipt{MessageID: "7", State: Expired}},
		{"id:7 submit_date:1201121551 stat:ENROUTE\x00", Receipt{MessageID: "7", Submitted: minute, State: Enroute}},
		{"id:7\tstat:UNDELIV\r\nerr:075\x00text:\tx\x00", Receipt{MessageID: "7", State: Undeliverable, Error: "075", Text: "\tx"}},
		{"id:7 done date:9999999999 stat:whatever", Receipt{MessageID: "7", State: Unknown}},
	} {
		got, ok := ParseReceipt(c.text)
		c.want.Raw = c.text
		if !ok || got != c.want {
			t.Errorf("%s\n%+v\n%+v", c.text, got, c.want)
		}
	}
	for _, text := range []string{"", "hello", "paid: yes", "id", "err:1"} {
		if r, ok := ParseReceipt(text); ok {
			t.Errorf("%q is a receipt: %+v", text, r)
		}
	}
}

func TestReceipt_RoundTrip(t *testing.T) {
	t.Parallel()
	for s := Scheduled; s <= Skipped; s++ {
		r := Receipt{MessageID: "123", State: s, Submitted: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
			Done:  time.Date(2026, 2, 2, 3, 4, 0, 0, time.UTC),
			Error: "011", Text: "hello", Parts: 1, Delivered: 1}
		back, ok := ParseReceipt(r.String())
		r.Raw = r.String()
		if !ok || back != r {
			t.Errorf("%+v\n%+v", r, back)
		}
	}
}

func TestIDs_FormatsMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form     IDFormat
		id, want string
	}{
		{Hex, "7B", "123"}, {Hex, "0x7b", "123"}, {Hex, "0000007b", "123"}, {Decimal, "0000000123", "123"}, {AsIs, "0123", "0123"},
		{Hex, "FFFFFFFFFFFFFFFFFFFF", "1208925819614629174706175"}, {Hex, "not-hex", "not-hex"}, {Decimal, "7b", "7b"}, {Decimal, "-1", "-1"}, {Hex, "", ""},
	} {
		if got := c.form.normalize(c.id); got != c.want {
			t.Errorf("%d %q: %q", c.form, c.id, got)
		}
	}
}

func TestReceipt_OptionalParametersPrecede(t *testing.T) {
	t.Parallel()
	m := &Message{ESMClass: 4, DataCoding: 4, ShortMessage: []byte("id:0000000123 stat:ENROUTE"),
		TLVs: TLVs{receiptedID("7C"), octetTLV(TagMessageState, 2), {TagNetworkErrorCode, []byte{3, 0, 11}}}}
	r, ok := m.receipt(TextSettings{}, IDs{Response: Hex, Receipt: Decimal, Option: Hex})
	if !ok || r.MessageID != "124" || r.State != Delivered || r.Error != "11" {
		t.Errorf("%+v %v", r, ok)
	}
	m.TLVs = nil
	if r, ok = m.receipt(TextSettings{}, IDs{Receipt: Decimal}); !ok || r.MessageID != "123" || r.State != Enroute {
		t.Errorf("%+v %v", r, ok)
	}
	m.ESMClass = 0
	if _, ok = m.receipt(TextSettings{}, IDs{}); ok {
		t.Error("a text that anybody can send is a receipt")
	}
}

// TestReceipt_MissingFieldsAndControlCharacters proves that the id and the state of a receipt are read without sub and dlvrd. Control
// characters between fields, at the end and in the text do not change them, whatever the data_coding is.
//
// https://github.com/uudashr/jsmpp/issues/67
// https://github.com/onlinecity/php-smpp/issues/70
func TestReceipt_MissingFieldsAndControlCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want Receipt
	}{
		{"id:0654354026 submit date:2302101454 done date:2302101454 stat:DELIVRD err:000",
			Receipt{MessageID: "0654354026", State: Delivered, Error: "000"}},
		{"id:117062714244798261 sub:001 dlvrd:001 submit date:1706271624 done date:1706271624 stat:DELIVRD err:0000 text:Hllo world\n",
			Receipt{MessageID: "117062714244798261", Parts: 1, Delivered: 1, State: Delivered, Error: "0000"}},
		{"id:117062714244798261 sub:001 dlvrd:001 submit date:1706271624 done date:1706271624 stat:DELIVRD err:0000 text:H\x1bello world",
			Receipt{MessageID: "117062714244798261", Parts: 1, Delivered: 1, State: Delivered, Error: "0000"}},
		{"id:a_7\tstat:UNDELIV\terr:075\x00", Receipt{MessageID: "a_7", State: Undeliverable, Error: "075"}},
		{"stat:DELIVRD\r\nid:7\x00", Receipt{MessageID: "7", State: Delivered}},
		{"\x02id:7\x1fstat:EXPIRED\x03", Receipt{MessageID: "7", State: Expired}},
	} {
		for _, coding := range []uint8{0, 1, 3, 4} {
			m := &Message{ESMClass: 4, DataCoding: coding, ShortMessage: []byte(c.text)}
			got, ok := m.receipt(TextSettings{}, IDs{})
			got.Raw, got.Text, got.Submitted, got.Done = "", "", time.Time{}, time.Time{}
			if !ok || got != c.want {
				t.Errorf("%q, data_coding %d:\n%+v\n%+v", c.text, coding, got, c.want)
			}
		}
	}
	m := &Message{ESMClass: 4, ShortMessage: []byte("id:a\x117 stat:DELIVRD text:\x1be 5_")}
	if got, _ := m.receipt(TextSettings{}, IDs{}); got.MessageID != "a_7" || got.Text != "€ 5§" {
		t.Errorf("GSM 7 bit: %+v", got)
	}
}

// TestReceipt_IDOfResponse proves that a receipt has the id that Submit returned, if the formats of the SMSC are set. One SMSC answers in
// hexadecimal and sends decimal receipts, others leave out leading zeros.
//
// https://github.com/jookies/jasmin/issues/1034
// https://github.com/jookies/jasmin/issues/1129
func TestReceipt_IDOfResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		response, receipt, option string // as the SMSC writes them; no option if empty
		ids                       IDs
	}{
		{"39f99dd5", "0972660181", "", IDs{Response: Hex, Receipt: Decimal}},
		{"39F99DD5", "972660181", "", IDs{Response: Hex, Receipt: Decimal}},
		{"972660181", "39f99dd5", "", IDs{Response: Decimal, Receipt: Hex}},
		{"00B8BE19", "00B8BE19", "", IDs{}},
		{"00B8BE19", "B8BE19", "", IDs{Response: Hex, Receipt: Hex}},
		{"BB42DD", "00bb42dd", "", IDs{Response: Hex, Receipt: Hex}},
		{"04062581461565934000241", "4062581461565934000241", "", IDs{Response: Decimal, Receipt: Decimal}},
		{"00B8BE19", "12107289", "b8be19", IDs{Response: Hex, Receipt: Decimal, Option: Hex}},
		{"1101C1-C9D03D-F000", "1101C1-C9D03D-F000", "", IDs{Response: Hex, Receipt: Hex}},
	} {
		smsc := fakeSMSC(t, func(p PDU, answer func(PDU)) {
			answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence, Body: &MessageResponse{MessageID: c.response}})
			m := &Message{ESMClass: 4, ShortMessage: []byte("id:" + c.receipt + " submit date:2203031741 done date:2203031741 stat:DELIVRD err:000")}
			if c.option != "" {
				m.TLVs = TLVs{receiptedID(c.option)}
			}
			answer(PDU{Command: DeliverSM, Sequence: 1, Body: m})
		})
		e := startClient(t, smsc, func(f *Config) { f.IDs = c.ids }).waitBound(t)
		sent, err := e.Submit(t.Context(), newMessage("x"))
		if err != nil || len(sent.MessageIDs) != 1 {
			t.Fatalf("%+v: %+v, %v", c, sent, err)
		}
		if got := within(t, e.receipts, "receipt"); got.MessageID != sent.MessageIDs[0] || got.State != Delivered {
			t.Errorf("%+v: sent as %s, the receipt is of %s: %+v", c, sent.MessageIDs[0], got.MessageID, got)
		}
	}
}

// TestEncodeReceipt_OctetsOfID proves that the id in the text of a receipt has the octets of the id in the response, which programs
// compare without decoding the text.
func TestEncodeReceipt_OctetsOfID(t *testing.T) {
	t.Parallel()
	const id = "sms_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"
	for _, alphabet := range []Alphabet{GSM, Latin1, ASCII} {
		octets := TextSettings{Default: alphabet}.encodeReceipt(Receipt{MessageID: id, State: Delivered, Text: "für_€"}.String())
		if text := string(octets); !strings.HasPrefix(text, "id:"+id+" ") || !strings.HasSuffix(text, "text:f?r_?") {
			t.Errorf("alphabet %v: %q", alphabet, text)
		}
	}
}
