package sipmsg

import (
	"encoding/base64"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"strings"
)

// Bodies: the session description of a message, alone or as a part of a multipart body (RFC 5621, RFC 2046 §5.1).

// SDPType is the type of session descriptions.
const SDPType = "application/sdp"

// AcceptedTypes is the value of an Accept field for messages that carry a session description.
const AcceptedTypes = SDPType + ", multipart/mixed"

// Limits on multipart bodies: nesting and number of parts. Parts beyond them are ignored.
const (
	maxBodyDepth = 4
	maxBodyParts = 32
)

// informationTypes are types whose parts are passed over unless they have a Content-Disposition that requires them: no
// call depends on them.
var informationTypes = []string{"application/isup", "application/qsig", "application/pidf+xml"}

// bodyPart is a body, or one part of a multipart body. Its fields are header values.
type bodyPart struct {
	contentType, disposition, encoding, transfer, id string

	content string
}

// sessionBody is the result of reading a body.
type sessionBody struct {
	sdp     string
	parts   int
	refusal *Refusal // of a request: the first part that is required and cannot be used
}

// SDP returns the session description of a message: its body, or the first one of a multipart body. It is "" if there is
// none that can be read. A body without a type counts as SDP.
func (m *Message) SDP() string {
	if m.Body == "" {
		return ""
	}
	return m.readBody().sdp
}

// checkBody refuses a required body of an unsupported type with 415 (RFC 3261 §8.2.3, RFC 5621 §4.3). It refuses an
// unreadable multipart body with 400.
func (m *Message) checkBody() *Refusal {
	if m.Method != "INVITE" && m.Method != "UPDATE" && m.Method != "PRACK" || m.Body == "" {
		return nil
	}
	return m.readBody().refusal
}

func (m *Message) readBody() (b sessionBody) {
	b.read(bodyPart{contentType: m.Get(FieldContentType), disposition: m.Get(FieldContentDisposition),
		encoding: m.Get(FieldContentEncoding), content: m.Body}, 0)
	return b
}

// read adds a part and the parts inside it.
func (b *sessionBody) read(p bodyPart, depth int) {
	switch {
	case p.encoding != "" && !strings.EqualFold(p.encoding, "identity"):
		b.refuse(p, &Refusal{Status: 415, Extra: "Accept-Encoding: identity\r\n"})
	case p.isSession():
		text, ok := p.decoded()
		if !ok {
			b.refuse(p, badRequest("Bad body"))
		} else if b.sdp == "" {
			b.sdp = text
		}
	case p.isMultipart() && depth < maxBodyDepth:
		b.readParts(p, depth)
	default:
		b.refuse(p, &Refusal{Status: 415, Extra: "Accept: " + AcceptedTypes + "\r\n"})
	}
}

// refuse records why a part cannot be used, if it is required.
func (b *sessionBody) refuse(p bodyPart, why *Refusal) {
	if b.refusal == nil && !p.isOptional() {
		b.refusal = why
	}
}

// readParts reads a multipart body. All parts of multipart/mixed matter. Of the parts of other kinds, which are one object
// in several forms or with additions, one session description is enough; the last form of multipart/alternative counts.
func (b *sessionBody) readParts(p bodyPart, depth int) {
	_, params := p.mediaType()
	boundary, _ := ParamOf(params, "boundary")
	if boundary == "" {
		b.refuse(p, badRequest("Bad body - no boundary"))
		return
	}
	var inner sessionBody
	alternatives := IsType(p.contentType, "multipart/alternative")
	r := multipart.NewReader(strings.NewReader(p.content), boundary)
	for inner.parts < maxBodyParts {
		part, err := r.NextRawPart()
		if err != nil {
			break
		}
		text, _ := io.ReadAll(part) // without the last boundary, all up to the end
		var one sessionBody
		one.read(newBodyPart(part, text), depth+1)
		if one.sdp != "" && (inner.sdp == "" || alternatives) {
			inner.sdp = one.sdp
		}
		if inner.refusal == nil {
			inner.refusal = one.refusal
		}
		inner.parts++
	}
	if inner.parts == 0 {
		b.refuse(p, badRequest("Bad body - no part"))
	} else if inner.refusal != nil && (inner.sdp == "" || isMixed(p.contentType)) {
		b.refuse(p, inner.refusal)
	}
	if b.sdp == "" {
		b.sdp = inner.sdp
	}
}

func newBodyPart(part *multipart.Part, text []byte) bodyPart {
	p := bodyPart{contentType: part.Header.Get("Content-Type"), disposition: part.Header.Get("Content-Disposition"),
		encoding: part.Header.Get("Content-Encoding"), transfer: part.Header.Get("Content-Transfer-Encoding"),
		id: part.Header.Get("Content-ID"), content: string(text)}
	if p.contentType == "" {
		p.contentType = "text/plain" // RFC 2046 §5.1
	}
	return p
}

// mediaType returns the type in lower case, and the parameters with the leading semicolon.
func (p bodyPart) mediaType() (name, params string) {
	name, params = p.contentType, ""
	if i := strings.IndexByte(name, ';'); i >= 0 {
		name, params = name[:i], name[i:]
	}
	return strings.ToLower(strings.TrimRight(name, " \t")), params
}

func (p bodyPart) isMultipart() bool {
	name, _ := p.mediaType()
	return strings.HasPrefix(name, "multipart/")
}

// isMixed reports whether the parts of a multipart type are independent: those of unknown kinds are (RFC 2046 §5.1.7).
func isMixed(contentType string) bool {
	return !IsType(contentType, "multipart/alternative") && !IsType(contentType, "multipart/related") &&
		!IsType(contentType, "multipart/signed")
}

// isSession reports whether a part is the session description. An early session (RFC 3959) is another one.
func (p bodyPart) isSession() bool {
	return (p.contentType == "" || IsType(p.contentType, SDPType)) && !IsType(p.disposition, "early-session")
}

// isOptional reports whether a part may be passed over (RFC 3261 §20.11): by its handling parameter; or because it belongs
// to the field that refers to it (RFC 5621 §6) or is information, and nothing requires it.
func (p bodyPart) isOptional() bool {
	if i := strings.IndexByte(p.disposition, ';'); i >= 0 {
		if handling, ok := ParamOf(p.disposition[i:], "handling"); ok {
			return strings.EqualFold(handling, "optional")
		}
	}
	if p.disposition != "" {
		return IsType(p.disposition, "by-reference")
	}
	name, _ := p.mediaType()
	return p.id != "" || ContainsFold(informationTypes, name)
}

// decoded returns the content without its transfer encoding. ok is false if that cannot be undone.
func (p bodyPart) decoded() (text string, ok bool) {
	var r io.Reader
	switch strings.ToLower(p.transfer) {
	case "", "binary", "7bit", "8bit":
		return p.content, true
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, strings.NewReader(p.content))
	case "quoted-printable":
		r = quotedprintable.NewReader(strings.NewReader(p.content))
	default:
		return "", false
	}
	b, err := io.ReadAll(r)
	return string(b), err == nil
}
