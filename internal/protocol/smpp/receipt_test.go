package smpp

import (
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
		TLVs: TLVs{textTLV(TagReceiptedMessageID, "7C"), octetTLV(TagMessageState, 2), {TagNetworkErrorCode, []byte{3, 0, 11}}}}
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
