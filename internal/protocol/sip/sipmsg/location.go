package sipmsg

// Location of an emergency caller in an INVITE: multipart body and Geolocation (RFC 6442).

// locationID is the Content-ID of the body part with the caller's location.
const locationID = "location@soniq.invalid"

// WithLocation combines an offer and a PIDF-LO document into one multipart body, and references the document in
// Geolocation (RFC 6442 §4.1, RFC 5621 §3).
func WithLocation(sdp, location []byte, extra string) (contentType string, body []byte, fields string) {
	boundary := NewTag()
	b := appendPart(nil, boundary, SDPType, "", sdp)
	b = appendPart(b, boundary, "application/pidf+xml", "<"+locationID+">", location)
	b = append(append(append(b, "--"...), boundary...), "--\r\n"...)
	fields = extra + "MIME-Version: 1.0\r\nGeolocation: <cid:" + locationID + ">\r\nGeolocation-Routing: yes\r\n"
	return "multipart/mixed;boundary=" + boundary, b, fields
}

func appendPart(b []byte, boundary, contentType, id string, part []byte) []byte {
	if len(part) == 0 {
		return b
	}
	b = append(append(append(b, "--"...), boundary...), "\r\n"...)
	b = AppendField(b, "Content-Type", contentType)
	if id != "" {
		b = AppendField(b, "Content-ID", id)
	}
	b = append(append(b, "\r\n"...), part...)
	return append(b, "\r\n"...)
}
