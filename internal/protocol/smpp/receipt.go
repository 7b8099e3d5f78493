package smpp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Receipt is a delivery receipt.
type Receipt struct {
	MessageID string // as returned by Submit; empty if the receipt has none
	From, To  Address
	State     State
	// Submitted and Done are zero if the receipt does not have them. Most SMSCs use their own time zone without
	// naming it; the times are then read as UTC.
	Submitted, Done time.Time
	Error           string // network error code, mostly up to three characters
	Text            string // the first characters of the message
	Parts           int    // sub: number of messages that it covers; mostly 1
	Delivered       int    // dlvrd: number of those that were delivered
	Raw             string // the receipt as received
}

// receiptFields are the field names in the text of a receipt; a colon follows each (appendix B).
var receiptFields = []string{"id", "sub", "dlvrd", "submit date", "done date", "stat", "err", "text"}

// String returns a receipt in the format of the specification.
func (r Receipt) String() string {
	text := []rune(r.Text)
	return fmt.Sprintf("id:%s sub:%03d dlvrd:%03d submit date:%s done date:%s stat:%s err:%s text:%s", r.MessageID, r.Parts, r.Delivered,
		receiptTime(r.Submitted), receiptTime(r.Done), r.State, zerosIfEmpty(r.Error), string(text[:min(20, len(text))]))
}

func receiptTime(t time.Time) string {
	if t.IsZero() {
		return "0000000000"
	}
	return t.UTC().Format("0601021504")
}

func zerosIfEmpty(s string) string {
	if s == "" {
		return "000"
	}
	return s
}

// ParseReceipt parses the text of a receipt. Fields may be missing, in any order, in any case, and have spaces after
// the colon. ok is false if it has neither an id nor a state.
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

// splitReceipt returns the value of each field. A value ends at the next field; that of text ends with the receipt.
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
		found[name] = strings.TrimFunc(rest[:end], isSeparator)
		rest = rest[end:]
	}
	return found
}

// nextField returns the first field in s that is not known yet. at is the length of s if there is none.
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

// isSeparator reports whether a character separates fields: a space, a control character, a comma or a semicolon.
func isSeparator(r rune) bool { return r <= ' ' || r == ',' || r == ';' }

// indexField returns the position of "name:" at the beginning of a word, in any case, with an underscore or a space;
// -1 if there is none.
func indexField(s, name string) int {
	for i := 0; i+len(name) < len(s); i++ {
		if s[i+len(name)] == ':' && (i == 0 || isSeparator(rune(s[i-1]))) &&
			strings.EqualFold(strings.ReplaceAll(s[i:i+len(name)], "_", " "), name) {
			return i
		}
	}
	return -1
}

// parseReceiptTime parses YYMMDDhhmm, optionally with seconds or with a century. Tenths and zones after it are
// ignored.
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
