package stir

import (
	"encoding/asn1"
	"errors"
	"strconv"
)

// numberList has the numbers for which a certificate may sign (TNAuthorizationList, RFC 8226 §9).
type numberList struct {
	provider bool // has a service provider code: the provider may sign for all its customers
	ranges   []numberRange
}

type numberRange struct {
	digits       int // of each number
	first, count uint64
}

var errNumbers = errors.New("malformed list of numbers")

// covers reports whether the certificate may sign for a number.
func (n *numberList) covers(number string) bool {
	x, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return false
	}
	for _, r := range n.ranges {
		if len(number) == r.digits && x >= r.first && x-r.first < r.count {
			return true
		}
	}
	return n.provider
}

// parseNumberList parses TNAuthorizationList. Its entries are tagged explicitly.
func parseNumberList(der []byte) (*numberList, error) {
	var entries []asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &entries); err != nil || len(rest) > 0 || len(entries) == 0 {
		return nil, errNumbers
	}
	n := &numberList{}
	for _, e := range entries {
		if err := n.add(e); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *numberList) add(e asn1.RawValue) error {
	if e.Class != asn1.ClassContextSpecific || !e.IsCompound {
		return errNumbers
	}
	var text string
	var err error
	switch e.Tag {
	case 0: // service provider code
		n.provider = true
		_, err = asn1.UnmarshalWithParams(e.Bytes, &text, "ia5")
	case 1:
		var r struct {
			Start string `asn1:"ia5"`
			Count int64
		}
		if _, err = asn1.Unmarshal(e.Bytes, &r); err == nil {
			err = n.addRange(r.Start, r.Count)
		}
	case 2:
		if _, err = asn1.UnmarshalWithParams(e.Bytes, &text, "ia5"); err == nil {
			err = n.addRange(text, 1)
		}
	default:
		err = errNumbers
	}
	return err
}

func (n *numberList) addRange(start string, count int64) error {
	first, err := strconv.ParseUint(start, 10, 64)
	if err != nil || count < 1 || len(start) > 15 {
		return errNumbers // also for * and #, because a caller's number never has them
	}
	n.ranges = append(n.ranges, numberRange{len(start), first, uint64(count)})
	return nil
}
