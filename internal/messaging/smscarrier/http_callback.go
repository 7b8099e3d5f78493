package smscarrier

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/op"
)

// HTTPCallback configures how requests of a carrier are verified and parsed.
type HTTPCallback struct {
	// Header is the header that holds Secret itself if HMAC is "", else a digest of the body: sha256 or sha1, in hex
	// or base64, with or without "sha256=" before it.
	Header string `json:"header"`
	Secret string `json:"secret"`
	HMAC   string `json:"hmac"`
	// Items is the path of several events in one request, such as results[*]; the other paths start there.
	Items   string      `json:"items"`
	Receipt HTTPReceipt `json:"receipt"`
	Message HTTPMessage `json:"message"`
}

// HTTPReceipt has the paths of a receipt, and the status words for delivered and undelivered messages. Other words
// have no effect.
type HTTPReceipt struct {
	ID          string   `json:"id"` // the identifier of the response, or {{reference}}
	Status      string   `json:"status"`
	Error       string   `json:"error"`
	Delivered   []string `json:"delivered"`
	Undelivered []string `json:"undelivered"`
}

// HTTPMessage has the paths of a message.
type HTTPMessage struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// callbackPaths are the parsed paths of a callback.
type callbackPaths struct {
	items, receiptID, status, errorCode, id, from, to, text jsonpath.Path
}

func (x HTTPCallback) parsePaths(at func(field, text string) jsonpath.Path) callbackPaths {
	return callbackPaths{items: at("callback.items", x.Items), receiptID: at("callback.receipt.id", x.Receipt.ID),
		status:    at("callback.receipt.status", x.Receipt.Status),
		errorCode: at("callback.receipt.error", x.Receipt.Error), id: at("callback.message.id", x.Message.ID),
		from: at("callback.message.from", x.Message.From),
		to:   at("callback.message.to", x.Message.To), text: at("callback.message.text", x.Message.Text)}
}

// digests are the hash functions for HMAC.
var digests = map[string]func() hash.Hash{"sha256": sha256.New, "sha1": sha1.New}

func (x HTTPCallback) validate() (wrong []op.Violation) {
	if x.enabled() && (x.Header == "" || len(x.Secret) < 8) {
		wrong = append(wrong, op.Field("settings.callback.secret", "required",
			"a header and a secret of at least 8 characters must say that a callback is the carrier's"))
	}
	if _, ok := digests[x.HMAC]; !ok && x.HMAC != "" {
		wrong = append(wrong, op.Field("settings.callback.hmac", "invalid_value", "must be sha256 or sha1, or left out"))
	}
	if x.Receipt.ID != "" && (x.Receipt.Status == "" || len(x.Receipt.Delivered) == 0) {
		wrong = append(wrong, op.Field("settings.callback.receipt", "required", "status and delivered say what a receipt means"))
	}
	if x.Message.Text != "" && (x.Message.From == "" || x.Message.To == "") {
		wrong = append(wrong, op.Field("settings.callback.message", "required", "from and to say whose a message is"))
	}
	return wrong
}

// enabled reports whether callbacks are configured.
func (x HTTPCallback) enabled() bool { return x.Receipt.ID != "" || x.Message.Text != "" }

// ParseCallback verifies and parses a request.
func (g *httpAdapter) ParseCallback(r *http.Request, raw []byte) ([]Event, error) {
	x := g.settings.Callback
	if !x.enabled() {
		return nil, errors.New("the carrier's settings do not say how callbacks are read")
	}
	if !x.verify(r.Header.Get(x.Header), raw) {
		return nil, ErrSignature
	}
	doc, err := parseDocument(r, raw)
	if err != nil {
		return nil, err
	}
	var events []Event
	for _, item := range g.callbackFields.items.Values(doc) {
		if e, ok := g.parseEvent(item); ok {
			events = append(events, e)
		}
	}
	return events, nil
}

// verify reports whether the value of the header is the secret, or the HMAC of the body. It compares in constant
// time.
func (x HTTPCallback) verify(given string, raw []byte) bool {
	if x.HMAC == "" {
		return subtle.ConstantTimeCompare([]byte(given), []byte(x.Secret)) == 1
	}
	_, digest, ok := strings.Cut(given, "=")
	if !ok || !strings.HasPrefix(given, x.HMAC+"=") {
		digest = given
	}
	mac := hmac.New(digests[x.HMAC], []byte(x.Secret))
	mac.Write(raw)
	sum := mac.Sum(nil)
	return hmac.Equal([]byte(strings.ToLower(digest)), []byte(hex.EncodeToString(sum))) ||
		hmac.Equal([]byte(digest), []byte(base64.StdEncoding.EncodeToString(sum)))
}

// parseDocument returns the body of a request: JSON, or a form as an object. Texts that are not Unicode are those of
// keepDamaged in JSON, and unchanged in a form.
func parseDocument(r *http.Request, raw []byte) (doc any, err error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(raw))
		all := map[string]any{}
		for name := range form {
			all[name] = form.Get(name)
		}
		return all, err
	}
	if err := json.Unmarshal(keepDamaged(raw), &doc); err != nil {
		return nil, errors.New("the body is neither JSON nor a form")
	}
	return doc, nil
}

// parseEvent returns the event of one item; ok is false if it has none.
func (g *httpAdapter) parseEvent(item any) (e Event, ok bool) {
	p, x := g.callbackFields, g.settings.Callback.Receipt
	if text := rawTextAt(p.text, item); text != "" {
		return Event{Message: &Incoming{ID: textAt(p.id, item), From: textAt(p.from, item), To: textAt(p.to, item), Body: text}}, true
	}
	id, status := textAt(p.receiptID, item), textAt(p.status, item)
	code := firstNonEmpty(textAt(p.errorCode, item), status)
	switch {
	case id == "":
		return e, false
	case slices.Contains(x.Delivered, status):
		return Event{Receipt: &Receipt{ID: id, Result: sms.Result{Status: sms.Delivered}}}, true
	case slices.Contains(x.Undelivered, status):
		return Event{Receipt: &Receipt{ID: id, Result: sms.Result{Status: sms.Undelivered,
			Fault: &sms.Fault{Code: "unreachable", Message: "the carrier reports " + status, CarrierCode: &code}}}}, true
	}
	return e, false
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// textAt returns the first selected value as text; "" if there is none, if it is not Unicode, or if the path is not
// configured.
func textAt(p jsonpath.Path, doc any) string { return undamaged(rawTextAt(p, doc)) }

// rawTextAt is textAt, but it returns a text that is not Unicode with damagedMark.
func rawTextAt(p jsonpath.Path, doc any) string {
	if p.IsDocument() {
		return ""
	}
	return p.Text(doc)
}
