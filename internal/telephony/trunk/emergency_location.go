package trunk

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"time"

	"soniq/internal/identity/org"
)

// EmergencyLocation returns the location that is sent with an emergency call. It is, in this order: the phone's, the
// organisation's, the one-line address of the caller-ID number, or the default address of the organisation. ok is
// false if there is none.
func EmergencyLocation(o org.Organization, phone *org.Civic, number *string) (place org.Civic, ok bool) {
	switch {
	case phone != nil:
		return *phone, true
	case o.Emergency.Location != nil:
		return *o.Emergency.Location, true
	case number != nil && *number != "":
		return org.Civic{Country: o.Country, Note: *number}, true
	case o.Emergency.DefaultAddress != nil && *o.Emergency.DefaultAddress != "":
		return org.Civic{Country: o.Country, Note: *o.Emergency.DefaultAddress}, true
	}
	return org.Civic{}, false
}

// PIDF returns a location as a PIDF-LO document (RFC 4119, with the civic elements of RFC 5139). The first parameter
// is the caller's number.
func PIDF(who string, place org.Civic, at time.Time) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	fmt.Fprintf(&b, `<presence xmlns="urn:ietf:params:xml:ns:pidf" xmlns:gp="urn:ietf:params:xml:ns:pidf:geopriv10" `+
		`xmlns:ca="urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr" entity="pres:%s@soniq.invalid"><tuple id="caller"><status><gp:geopriv>`+
		`<gp:location-info><ca:civicAddress>`, escapeXML(who))
	for _, e := range place.Elements() {
		fmt.Fprintf(&b, "<ca:%s>%s</ca:%s>", e.Name, escapeXML(e.Text), e.Name)
	}
	fmt.Fprintf(&b, `</ca:civicAddress></gp:location-info><gp:usage-rules/><gp:method>Manual</gp:method></gp:geopriv></status>`+
		`<timestamp>%s</timestamp></tuple></presence>`, at.UTC().Format(time.RFC3339))
	return b.Bytes()
}

func escapeXML(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // writing into a buffer does not fail
	return b.String()
}
