package smpp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Receipt says what became of a message.
type Receipt struct {
	MessageID string // as Submit gave it; empty where the receipt has none
	From, To  Address
	State     State
	// Submitted and Done are zero where the centre does not say. Most give them in their own time zone and do not say which:
	// that is read as UTC.
	Submitted, Done time.Time
	Error           string // the network's code, of up to three characters mostly
	Text            string // the first characters of the message
	Parts           int    // sub: of how many messages it speaks; 1 mostly
	Delivered       int    // dlvrd: how many of them arrived
	Raw             string // the receipt as it came
}

// receiptFields are what a receipt's text may say, each before a colon (appendix B).
var receiptFields = []string{"id", "sub", "dlvrd", "submit date", "done date", "stat", "err", "text"}

// String writes a receipt as the specification has it.
func (r Receipt) String() string {
	text := []rune(r.Text)
	return fmt.Sprintf("id:%s sub:%03d dlvrd:%03d submit date:%s done date:%s stat:%s err:%s text:%s", r.MessageID, r.Parts, r.Delivered,
		receiptTime(r.Submitted), receiptTime(r.Done), r.State, orZeros(r.Error), string(text[:min(20, len(text))]))
}

func receiptTime(t time.Time) string {
	if t.IsZero() {
		return "0000000000"
	}
	return t.UTC().Format("0601021504")
}

func orZeros(s string) string {
	if s == "" {
		return "000"
	}
	return s
}

// ParseReceipt reads a receipt's text; fields may be missing, in any order, in any case, and have spaces after the colon.
// ok is false where it has neither an id nor a state.
func ParseReceipt(text string) (r Receipt, ok bool) {
	r.Raw = text
	f := splitReceipt(text)
	r.MessageID, r.Error, r.Text = f["id"], f["err"], f["text"]
	r.State = Unknown
	if f["stat"] != "" {
		r.State = parseState(f["stat"])
	}
	r.Parts, _ = strconv.Atoi(f["sub"])
	r.Delivered, _ = strconv.Atoi(f["dlvrd"])
	r.Submitted, r.Done = parseReceiptTime(f["submit date"]), parseReceiptTime(f["done date"])
	return r, r.MessageID != "" || f["stat"] != ""
}

// splitReceipt finds each field's value: up to the next field, the text's up to the end.
func splitReceipt(text string) map[string]string {
	found := map[string]string{}
	for rest := text; rest != ""; {
		name, at := nextField(rest, found)
		if name == "" {
			break
		}
		rest = rest[at+len(name)+1:]
		if name == "text" {
			found[name] = strings.Trim(rest, "\x00")
			break
		}
		_, end := nextField(rest, found)
		found[name] = strings.Trim(rest[:end], " \t\r\n\x00,;")
		rest = rest[end:]
	}
	return found
}

// nextField is the first field named in s that is not known yet; at is the end of s where there is none.
func nextField(s string, known map[string]string) (name string, at int) {
	at = len(s)
	for _, f := range receiptFields {
		if _, ok := known[f]; ok {
			continue
		}
		if i := indexField(s, f); i >= 0 && i < at {
			name, at = f, i
		}
	}
	return name, at
}

// indexField finds "name:" at the beginning of a word, in any case, and with an underscore for a space.
func indexField(s, name string) int {
	for i := 0; i+len(name) < len(s); i++ {
		if s[i+len(name)] == ':' && (i == 0 || s[i-1] == ' ' || s[i-1] == ',' || s[i-1] == ';' || s[i-1] == '\n') &&
			strings.EqualFold(strings.ReplaceAll(s[i:i+len(name)], "_", " "), name) {
			return i
		}
	}
	return -1
}

// parseReceiptTime reads YYMMDDhhmm, with seconds, or with a century; what follows (tenths, zones) is left out.
func parseReceiptTime(s string) time.Time {
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	layouts := []string{"060102150405", "0601021504"}
	if strings.HasPrefix(s, "20") && digits >= 14 {
		layouts = []string{"20060102150405", "060102150405"}
	}
	for _, l := range layouts {
		if digits < len(l) {
			continue
		}
		if t, err := time.Parse(l, s[:len(l)]); err == nil {
			return t
		}
	}
	return time.Time{}
}
