package sipmsg

import "strings"

// Names of header fields, with their compact forms.

// FieldName identifies a header field that this package reads or writes; FieldOther for the rest.
type FieldName uint8

const (
	FieldOther FieldName = iota
	FieldVia
	FieldFrom
	FieldTo
	FieldCallID
	FieldCSeq
	FieldMaxForwards
	FieldContact
	FieldContentLength
	FieldContentType
	FieldContentEncoding
	FieldRoute
	FieldRecordRoute
	FieldRequire
	FieldExpires
	FieldAuthorization
	FieldProxyAuthorization
	FieldWWWAuthenticate
	FieldProxyAuthenticate
	FieldAccept
	FieldPath
	FieldUserAgent
	FieldIdentity
	FieldPrivacy
	FieldReason
	FieldRetryAfter
	FieldMinExpires
	FieldReferTo
	FieldReferredBy
	FieldTimestamp
	FieldSupported
	FieldContentDisposition
	FieldReferSub
	FieldSessionExpires
	FieldEvent
)

// Field is one header field; value is unfolded and trimmed.
type Field struct {
	Kind  FieldName
	Name  string
	Value string
}

// FieldNamed returns the kind of a field by its long name in any case, or by its compact form (RFC 3261 §7.3.3,
// §20).
func FieldNamed(name string) FieldName {
	if len(name) == 1 {
		return compactKind(name[0] | 0x20)
	}
	for _, f := range fieldsByLength[min(len(name), len(fieldsByLength)-1)] {
		if strings.EqualFold(f.name, name) {
			return f.kind
		}
	}
	return FieldOther
}

func compactKind(c byte) FieldName {
	switch c {
	case 'v':
		return FieldVia
	case 'f':
		return FieldFrom
	case 't':
		return FieldTo
	case 'i':
		return FieldCallID
	case 'm':
		return FieldContact
	case 'l':
		return FieldContentLength
	case 'c':
		return FieldContentType
	case 'e':
		return FieldContentEncoding
	case 'k':
		return FieldSupported
	case 'x':
		return FieldSessionExpires
	case 'r':
		return FieldReferTo
	case 'b':
		return FieldReferredBy
	case 'o':
		return FieldEvent
	}
	return FieldOther
}

type knownField struct {
	name string
	kind FieldName
}

var fieldsByLength = func() (t [20][]knownField) {
	for _, f := range []knownField{
		{"Via", FieldVia}, {"From", FieldFrom}, {"To", FieldTo}, {"Call-ID", FieldCallID}, {"CSeq", FieldCSeq},
		{"Max-Forwards", FieldMaxForwards}, {"Contact", FieldContact}, {"Content-Length", FieldContentLength},
		{"Content-Type", FieldContentType}, {"Content-Encoding", FieldContentEncoding}, {"Route", FieldRoute},
		{"Record-Route", FieldRecordRoute}, {"Require", FieldRequire}, {"Expires", FieldExpires},
		{"Authorization", FieldAuthorization}, {"Proxy-Authorization", FieldProxyAuthorization},
		{"WWW-Authenticate", FieldWWWAuthenticate}, {"Proxy-Authenticate", FieldProxyAuthenticate},
		{"Accept", FieldAccept}, {"Path", FieldPath}, {"User-Agent", FieldUserAgent},
		{"P-Asserted-Identity", FieldIdentity}, {"Privacy", FieldPrivacy}, {"Reason", FieldReason},
		{"Retry-After", FieldRetryAfter}, {"Min-Expires", FieldMinExpires}, {"Refer-To", FieldReferTo},
		{"Referred-By", FieldReferredBy}, {"Timestamp", FieldTimestamp}, {"Supported", FieldSupported},
		{"Content-Disposition", FieldContentDisposition}, {"Refer-Sub", FieldReferSub},
		{"Session-Expires", FieldSessionExpires}, {"Event", FieldEvent},
	} {
		t[len(f.name)] = append(t[len(f.name)], f)
	}
	return t
}()

// isSingleton reports whether a field must not appear twice (RFC 3261 §7.3.1).
func (k FieldName) isSingleton() bool {
	switch k {
	case FieldFrom, FieldTo, FieldCallID, FieldCSeq, FieldMaxForwards, FieldContentLength, FieldContentType, FieldExpires:
		return true
	}
	return false
}

// IsReserved reports whether a server writes the field itself, so that no caller may set it.
func (k FieldName) IsReserved() bool {
	switch k {
	case FieldVia, FieldFrom, FieldTo, FieldCallID, FieldCSeq, FieldMaxForwards, FieldContact, FieldContentLength,
		FieldContentType, FieldRoute, FieldRecordRoute:
		return true
	}
	return false
}
