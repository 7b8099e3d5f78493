package sip

import "strings"

// Names of header fields, with their compact forms.

// fieldName identifies a header field that this package reads or writes; otherField for the rest.
type fieldName uint8

const (
	otherField fieldName = iota
	fVia
	fFrom
	fTo
	fCallID
	fCSeq
	fMaxForwards
	fContact
	fContentLength
	fContentType
	fContentEncoding
	fRoute
	fRecordRoute
	fRequire
	fExpires
	fAuthorization
	fProxyAuthorization
	fWWWAuthenticate
	fProxyAuthenticate
	fAccept
	fPath
	fUserAgent
	fIdentity
	fPrivacy
	fReason
	fRetryAfter
	fMinExpires
	fReferTo
	fReferredBy
	fTimestamp
	fSupported
	fContentDisposition
	fReferSub
	fSessionExpires
	fEvent
)

// field is one header field; value is unfolded and trimmed.
type field struct {
	kind  fieldName
	name  string
	value string
}

// fieldKind returns the kind of a field by its long name in any case, or by its compact form (RFC 3261 §7.3.3,
// §20).
func fieldKind(name string) fieldName {
	if len(name) == 1 {
		return compactKind(name[0] | 0x20)
	}
	for _, f := range fieldsByLength[min(len(name), len(fieldsByLength)-1)] {
		if strings.EqualFold(f.name, name) {
			return f.kind
		}
	}
	return otherField
}

func compactKind(c byte) fieldName {
	switch c {
	case 'v':
		return fVia
	case 'f':
		return fFrom
	case 't':
		return fTo
	case 'i':
		return fCallID
	case 'm':
		return fContact
	case 'l':
		return fContentLength
	case 'c':
		return fContentType
	case 'e':
		return fContentEncoding
	case 'k':
		return fSupported
	case 'x':
		return fSessionExpires
	case 'r':
		return fReferTo
	case 'b':
		return fReferredBy
	case 'o':
		return fEvent
	}
	return otherField
}

type knownField struct {
	name string
	kind fieldName
}

var fieldsByLength = func() (t [20][]knownField) {
	for _, f := range []knownField{
		{"Via", fVia}, {"From", fFrom}, {"To", fTo}, {"Call-ID", fCallID}, {"CSeq", fCSeq},
		{"Max-Forwards", fMaxForwards}, {"Contact", fContact}, {"Content-Length", fContentLength},
		{"Content-Type", fContentType}, {"Content-Encoding", fContentEncoding}, {"Route", fRoute},
		{"Record-Route", fRecordRoute}, {"Require", fRequire}, {"Expires", fExpires},
		{"Authorization", fAuthorization}, {"Proxy-Authorization", fProxyAuthorization},
		{"WWW-Authenticate", fWWWAuthenticate}, {"Proxy-Authenticate", fProxyAuthenticate},
		{"Accept", fAccept}, {"Path", fPath}, {"User-Agent", fUserAgent},
		{"P-Asserted-Identity", fIdentity}, {"Privacy", fPrivacy}, {"Reason", fReason},
		{"Retry-After", fRetryAfter}, {"Min-Expires", fMinExpires}, {"Refer-To", fReferTo},
		{"Referred-By", fReferredBy}, {"Timestamp", fTimestamp}, {"Supported", fSupported},
		{"Content-Disposition", fContentDisposition}, {"Refer-Sub", fReferSub},
		{"Session-Expires", fSessionExpires}, {"Event", fEvent},
	} {
		t[len(f.name)] = append(t[len(f.name)], f)
	}
	return t
}()

// isSingleton reports whether a field must not appear twice (RFC 3261 §7.3.1).
func (k fieldName) isSingleton() bool {
	switch k {
	case fFrom, fTo, fCallID, fCSeq, fMaxForwards, fContentLength, fContentType, fExpires:
		return true
	}
	return false
}
