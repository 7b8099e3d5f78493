package smpp

import "strings"

// Address is the address of a sender or recipient (§5.2.5 to §5.2.9).
type Address struct {
	TON, NPI uint8
	Digits   string // or letters; up to 20 of them in messages
}

// maxAddress bounds received addresses: those of data_sm, the longest, including the NUL.
const maxAddress = 65

// ParseAddress converts an address as users write it. "+4930123456" is an international number, "72345" a number of
// the network, and anything with a letter is alphanumeric.
func ParseAddress(s string) Address {
	s = strings.TrimSpace(s)
	digits, international := strings.CutPrefix(s, "+")
	switch {
	case strings.Trim(digits, "0123456789*#") != "":
		return Address{TON: 5, Digits: s}
	case international:
		return Address{TON: 1, NPI: 1, Digits: digits}
	}
	return Address{NPI: 1, Digits: digits}
}

// String returns the address as ParseAddress accepts it; international numbers have their plus.
func (a Address) String() string {
	if a.TON == 1 && a.Digits != "" && !strings.HasPrefix(a.Digits, "+") {
		return "+" + a.Digits
	}
	return a.Digits
}

func (a *Address) fields(c *coder, field string) {
	c.octet(field+"_ton", &a.TON)
	c.octet(field+"_npi", &a.NPI)
	c.text(field, &a.Digits, maxAddress)
}
