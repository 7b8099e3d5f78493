package org

import (
	"strings"
	"unicode"

	"soniq/internal/platform/op"
)

// Civic is a civic address for emergency services, in the elements of RFC 5139.
type Civic struct {
	Country     string `json:"country" example:"DE" doc:"ISO 3166"`
	Region      string `json:"region,omitempty" doc:"State, province or county, such as NY"`
	City        string `json:"city" example:"Berlin"`
	District    string `json:"district,omitempty"`
	Street      string `json:"street" example:"Invalidenstraße"`
	HouseNumber string `json:"house_number" example:"43a"`
	Building    string `json:"building,omitempty"`
	Floor       string `json:"floor,omitempty" example:"2"`
	Room        string `json:"room,omitempty" example:"2.14"`
	Postcode    string `json:"postcode,omitempty"`
	Name        string `json:"name,omitempty" doc:"Who lives or works there, as on the door"`
	Note        string `json:"note,omitempty" doc:"Anything that helps to find it"`
}

// Element is one element of a civic address: its name in RFC 5139 §3, and its text.
type Element struct{ Name, Text string }

// Elements returns the elements that are set, in the order of the schema of RFC 5139 §4.
func (c Civic) Elements() []Element {
	all := []Element{{"country", c.Country}, {"A1", c.Region}, {"A3", c.City}, {"A4", c.District}, {"RD", c.Street},
		{"HNO", c.HouseNumber}, {"LOC", c.Note}, {"NAM", c.Name}, {"PC", c.Postcode}, {"BLD", c.Building}, {"FLR", c.Floor},
		{"ROOM", c.Room}}
	known := all[:0]
	for _, e := range all {
		if e.Text != "" {
			known = append(known, e)
		}
	}
	return known
}

// String returns the address in one line.
func (c Civic) String() string {
	var parts []string
	for _, p := range []string{c.Name, join(c.Street, c.HouseNumber), c.Building, label("floor ", c.Floor), label("room ", c.Room),
		join(c.Postcode, c.City), c.District, c.Region, c.Country, c.Note} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

func label(what, text string) string {
	if text == "" {
		return ""
	}
	return what + text
}

// maxElement is the length limit of an element, in characters.
const maxElement = 120

// Check lists the violations of an address. field is its name in the request. Country, city, street and house number
// are required, because emergency services need them to find the place.
func (c Civic) Check(field string) []op.Violation {
	var wrong checker
	code, known := Country(c.Country)
	wrong.want(known && code == c.Country, field+".country", "invalid_country", ErrCountry.Error())
	for _, e := range []struct{ name, text string }{{"city", c.City}, {"street", c.Street}, {"house_number", c.HouseNumber}} {
		wrong.want(strings.TrimSpace(e.text) != "", field+"."+e.name, "required", "is needed to find the place")
	}
	for _, e := range c.Elements() {
		wrong.want(len([]rune(e.Text)) <= maxElement, field, "invalid_length",
			e.Text[:min(len(e.Text), 20)]+"… has more than 120 characters")
		wrong.want(strings.IndexFunc(e.Text, unicode.IsControl) < 0, field, "invalid_value", "must not contain control characters")
	}
	return wrong
}
